"""A regression on PyTorch/XLA as its users write it, with two of their mistakes: a batch of any size, and `.item()`.

PJRT_DEVICE=CPU jaxobs run examples/train_torch_xla.py
"""

import torch
import torch_xla

STEPS = 480


def make_model(device):
    layers = [torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(256, 1)).to(device)


def batches(steps):
    """As they come from a file: the last one of every 40 is what is left, another size each time."""
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        size = 64 if step % 40 < 39 else 33 + step // 16
        x = torch.randn(size, 32, generator=generator)
        yield x, x.sum(1, keepdim=True).sin()


def train(steps):
    device = torch_xla.device()
    model = make_model(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    total = 0.0
    for x, y in batches(steps):
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        scale = torch.median(x)  # torch_xla has no lowering of `median`
        total += loss.item()  # waits for the device in each step
        torch_xla.sync()
    return total / steps, float(scale)


if __name__ == "__main__":
    mean, _ = train(STEPS)
    print(f"mean loss {mean:.3f}")
