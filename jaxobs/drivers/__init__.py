"""What the hardware says of itself: NVML, libtpu, which device is which, the peaks of data sheets."""
