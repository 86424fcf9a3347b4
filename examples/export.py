# %% [markdown]
# # Export
#
# `torch.export` takes the layer as it is. For other runtimes, which do not know the compiled routine, the reference
# path (`backend="reference"`) is a loop of ordinary operations that is written out step by step.
#
# | | what works | what does not |
# | --- | --- | --- |
# | `torch.export`, default backend | any length and batch | loading without `associative_lstm` |
# | `torch.export`, reference | loading with PyTorch alone | other lengths: the loop is unrolled |
# | ONNX, reference | with `onnx` and `onnxscript` | other lengths; the default backend |

# %%
import importlib.util
import io

import torch

from associative_lstm import AssociativeLSTM

torch.manual_seed(0)
layer = AssociativeLSTM(4, 16, num_copies=2).eval()
x = torch.randn(6, 2, 4)
meant, _ = layer(x)

# %% [markdown]
# ## The default backend: any length and batch

# %%
sizes = {"x": {0: torch.export.Dim("T", min=1, max=1000), 1: torch.export.Dim("B", min=1, max=1000)}}
program = torch.export.export(layer, (x,), dynamic_shapes=sizes)
file = io.BytesIO()
torch.export.save(program, file)
file.seek(0)
loaded = torch.export.load(file).module()
output, _ = loaded(x)
assert torch.allclose(output, meant, atol=1e-6)
print("exported:", tuple(loaded(torch.randn(50, 7, 4))[0].shape), f"{len(file.getvalue()):,} bytes")

# %% [markdown]
# ## The reference: nothing but PyTorch's own operations

# %%
plain = AssociativeLSTM(4, 16, num_copies=2, backend="reference").eval()
plain.load_state_dict(layer.state_dict())
program = torch.export.export(plain, (x,))
ours = [node for node in program.graph.nodes if "associative" in str(node.target)]
assert not ours
output, _ = program.module()(x)
assert torch.allclose(output, meant, atol=1e-5)
print(f"exported as {len(program.graph.nodes)} nodes of PyTorch's own, for sequences of {len(x)} steps")

# %% [markdown]
# ## ONNX
#
# `torch.onnx` needs the packages onnx and onnxscript. It knows every operation of the reference path but `hypot`, the
# modulus of a complex number, which is told to it here.

# %%
if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxscript"):
    from onnx.reference import ReferenceEvaluator
    from onnxscript import opset18 as op

    def hypot(a, b):
        return op.Sqrt(op.Add(op.Mul(a, a), op.Mul(b, b)))

    table = {torch.ops.aten.hypot.default: hypot}
    model = torch.onnx.export(plain, (x,), dynamo=True, custom_translation_table=table).model_proto
    [output, *_] = ReferenceEvaluator(model).run(None, {model.graph.input[0].name: x.numpy()})
    assert torch.allclose(torch.from_numpy(output), meant, atol=1e-5)
    print(f"ONNX: {len(model.graph.node)} nodes, the same numbers")
else:
    print("ONNX: torch.onnx needs the packages onnx and onnxscript, which are not installed")
