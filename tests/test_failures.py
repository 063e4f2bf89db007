"""How the program ends when it is the program that is wrong: a paragraph, no traceback."""

import pytest

from gristmill.cli import failures


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError("wall_s"), "KeyError: 'wall_s'"),
        (MemoryError(), "the system gives no more memory"),
        (PermissionError(13, "Permission denied", "a"), "cannot use a: permission denied"),
        (BaseException("a panic"), "BaseException: a panic"),
    ],
)
def test_a_paragraph(error: BaseException, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise error
    except BaseException as caught:  # noqa: BLE001 - as the edge of the program does
        assert failures.conclude(caught) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(("gristmill: cannot ", "gristmill: a defect of Gristmill in "))
    assert says in shown.err
    assert shown.err.count("\n") == 1
