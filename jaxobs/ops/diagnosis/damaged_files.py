"""Files that cannot be read, as long as only the code that reads them tells what they hold."""

from __future__ import annotations

DAMAGED = r"BadZipFile|UnpicklingError|pickle data was truncated|invalid load key|Ran out of input"
"""What a file of any purpose raises."""

STORE = "Error (?:opening|reading) ..?(?:zarr|zarr3|ocdbt|neuroglancer).{0,400}"
"""What TensorStore raises, which keeps checkpoints and caches of the input."""
READS_INPUT = (
    r"(?s:\A(?!.*(?:orbax|checkpoint|serialization)))(?s:.*)"
    r"(?:levanter/(?:store|data)/|xarray_tensorstore|input_pipeline|"
    r"(?:\A|[/_\n])data(?:sets?|loaders?|_?load(?:er|ing)s?|_pipeline|_sources?)?(?:/[^\n/]+)?\.py)"
)
"""In the files of the innermost calls."""

DOES_WITHOUT = (
    r"(?i:\b(?:remov|delet|skip+|ignor|drop+|discard|clean)(?:ed|ing)\b|"
    r"\b(?:remove|delete|skip|ignore|drop|discard)s\b)"
)
"""Says that what is damaged is left out, as it was meant to be."""

OF_SO_MANY_PROCESSES = r"\bprocess_\d+-of-\d+\.json['\"]? (?:does not exist|not found)"
"""The file of a process's input, which is named after how many processes there are: the save was of another number."""
