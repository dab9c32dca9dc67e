"""Cases, sizes, values and programs, as several patterns need them."""
