"""Refusals of the command."""


def one_line(result: tuple[int, str, str], *parts: str) -> None:
    """Check that a refusal has exit code 2 and one line with these words."""
    code, out, err = result
    assert code == 2, err
    assert not out
    assert err.startswith("sojourn: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    for part in parts:
        assert part in err, err
