"""Takes frames of ours out of the tracebacks of what the program raises."""

traceback_of = vars(BaseException)["__traceback__"].__get__
"""By the method of the base class: an exception type may refuse to have its attributes read."""


def leave(error: BaseException) -> None:
    """Takes the frame that catches `error` out of its traceback; a bare `raise` does not put it back.

    By the methods of the base class: an exception type may refuse to have its attributes set.
    """
    traceback = traceback_of(error)
    if traceback is not None:
        BaseException.with_traceback(error, traceback.tb_next)
