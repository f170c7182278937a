"""Trains a small model with PyTorch on the CPU; each operator that reaches the CPU's code launches a kernel as well.

    torch_model.py LIBRARY [STEPS=6] [plain|profile|stacks]

LIBRARY is what liblaunch.hip makes. `profile` runs torch.profiler beside, `stacks` with Python stacks and modules. APP_SITES
names the file that gets a line `thread-id operator module` for each launch, in order within a thread: what PyTorch says of
the operator, and the classes of the modules whose hooks were called and that have not returned, the outermost first; `-` for
none. It prints what the model computes, and the calls of each operator that torch.profiler counted.
"""

import collections
import ctypes
import json
import os
import re
import sys
import threading

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

launch = ctypes.CDLL(sys.argv[1]).launch_kernel
local = threading.local()
notes = []


def begin():
    local.modules, local.noted = [], []
    notes.append((threading.get_native_id(), local.noted))


def launched(operator):
    local.noted.append(f"{operator} {'/'.join(local.modules) or '-'}")
    launch()


class Device(TorchDispatchMode):
    """Each operator launches a kernel, then the CPU computes. PyTorch reports `detach` also where it calls no operator."""

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = function._schema.name
        if name.startswith("aten::") and name != "aten::detach":
            launched(name)
        return function(*arguments, **keywords or {})


# These replace the CPU's own code, as the library of a device does.
library = torch.library.Library("aten", "IMPL")


def erf(values):
    launched("aten::erf")
    return torch.from_numpy(values.detach().numpy() * 0.5)


def logaddexp(left, right):
    launched("aten::logaddexp")
    return torch.from_numpy(left.detach().numpy() + right.detach().numpy())


library.impl("erf", erf, "CPU")
library.impl("logaddexp", logaddexp, "CPU")


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, values):
        query, key, value = self.inputs(values).chunk(3, dim=-1)
        weights = functional.softmax(query @ key.transpose(-1, -2) * 0.3, dim=-1)
        return self.output(weights @ value)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention, self.norm = Attention(width), nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, values):
        values = values + self.attention(self.norm(values))
        return values.add_(self.inner(values)) if not torch.is_grad_enabled() else values + self.inner(values)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values * 2

    @staticmethod
    def backward(context, gradient):
        return gradient.mul(2)


class Net(nn.Module):
    def __init__(self, width=16, blocks=2):
        super().__init__()
        self.convolution = nn.Conv1d(4, width, 3, padding=1)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 5)

    def forward(self, values):
        values = self.convolution(values).transpose(1, 2)
        for number, block in enumerate(self.blocks):
            if number and torch.is_grad_enabled():
                values = checkpoint(block, values)
            else:
                values = block(values)
        values = Scale.apply(values.clamp(-9, 9))
        values = torch.logaddexp(torch.erf(values.detach()), torch.zeros(())) + values
        return self.head(values.mean(dim=1)).squeeze(0)


def watch(module):
    """Hooks note which modules are entered: roctop must find the same by the stack."""

    def enter(module, _):
        local.modules.append(type(module).__name__)

    def leave(module, _, result):
        local.modules.pop()

    for one in module.modules():
        one.register_forward_pre_hook(enter)
        one.register_forward_hook(leave)


def train(net, steps):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    wanted = torch.tensor([1, 3, 0])
    for _ in range(steps):
        values = torch.randn(3, 4, 8)
        loss = functional.cross_entropy(net(values), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss


def infer(net, steps, values, results):
    begin()
    with torch.no_grad(), Device():
        for _ in range(steps):
            result = net(values)
    results.append(result.sum().item())


def backward_of(loss):
    begin()
    with Device():
        loss.backward()


def work(steps):
    torch.manual_seed(7)
    torch.set_num_threads(1)
    net, values = Net(), torch.randn(1, 4, 8)
    watch(net)
    results = []
    with Device():
        results.append(train(net, steps).item())
    thread = threading.Thread(target=infer, args=(net, steps, values, results))
    thread.start()
    thread.join()
    # The graph is made on this thread, and goes backward on another one.
    with Device():
        loss = net(values).sum()
    thread = threading.Thread(target=backward_of, args=(loss,))
    thread.start()
    thread.join()
    results.append(sum(parameter.grad.sum().item() for parameter in net.parameters()))
    return results


def name_of(event):
    """Without addresses. How often a thread waits for another one depends on time."""
    name = re.sub(r" object at 0x[0-9a-f]+", "", event.name())
    return "waiting" if re.search(r"^threading\.py|_thread\.|allocate_lock|collections\.deque", name) else name


def main():
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    how = sys.argv[3] if len(sys.argv) > 3 else "profile"
    begin()
    if how == "plain":
        print(json.dumps([work(steps)]))
    else:
        from torch.profiler import ProfilerActivity, profile

        with_stacks = {"with_stack": True, "with_modules": True} if how == "stacks" else {}
        with profile(activities=[ProfilerActivity.CPU], **with_stacks) as profiler:
            results = work(steps)
        # As Kineto has them. `key_averages` joins calls that have one time of day in µs, a different number in each run.
        counts = collections.Counter(map(name_of, profiler.profiler.kineto_results.events()))
        del counts["waiting"]
        print(json.dumps([results, counts], sort_keys=True))
    with open(os.environ["APP_SITES"], "w") as file:
        for thread, noted in notes:
            file.writelines(f"{thread} {line}\n" for line in noted)


if __name__ == "__main__":
    main()
