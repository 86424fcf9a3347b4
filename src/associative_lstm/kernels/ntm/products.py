"""Matrix products for a few rows at a time, inside compiled loops over time."""

from associative_lstm.kernels.compiler.runtime import jit


@jit
def add_products(y, a, x):
    """``y += x @ a``, one sum per element in the order of the rows of ``a``.

    Four rows of ``a`` at a time, so that ``y`` is loaded and stored seldom, and two rows of ``x`` at a time, so
    that ``a`` is: a few rows are all there is, and reading ``a`` is what takes the time. The order of the sum is
    the same for every row of ``x``, whichever rows stand beside it.
    """
    rows, inner, outer = x.shape[0], a.shape[0], a.shape[1]
    whole = inner - inner % 4
    for k in range(0, whole, 4):
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        for b in range(0, rows - 1, 2):
            x0, x1, x2, x3 = x[b, k], x[b, k + 1], x[b, k + 2], x[b, k + 3]
            z0, z1, z2, z3 = x[b + 1, k], x[b + 1, k + 1], x[b + 1, k + 2], x[b + 1, k + 3]
            y0, y1 = y[b], y[b + 1]
            for j in range(outer):
                y0[j] = y0[j] + a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
                y1[j] = y1[j] + a0[j] * z0 + a1[j] * z1 + a2[j] * z2 + a3[j] * z3
        if rows % 2:
            b = rows - 1
            x0, x1, x2, x3 = x[b, k], x[b, k + 1], x[b, k + 2], x[b, k + 3]
            y0 = y[b]
            for j in range(outer):
                y0[j] = y0[j] + a0[j] * x0 + a1[j] * x1 + a2[j] * x2 + a3[j] * x3
    for k in range(whole, inner):
        for b in range(rows):
            for j in range(outer):
                y[b, j] += a[k, j] * x[b, k]
