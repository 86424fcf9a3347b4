"""Colours of everything that is drawn: distinguishable with any kind of colour vision (Okabe and Ito, 2008).

The last two rows, of networks that came later, are Tol's muted colours (2021) and a grey.

Which network is drawn in which, its entry in ``networks.py`` says.
"""

BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
ROSE, INDIGO, TEAL, OLIVE = "#CC6677", "#332288", "#44AA99", "#999933"
WINE, GREY = "#882255", "#888888"
CYCLE = [BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK]
NAMED = {
    name.lower(): value
    for name, value in list(globals().items())
    if name.isupper() and isinstance(value, str)
}
"""The colours by name, as the pages' styles know them."""
