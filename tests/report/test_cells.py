"""Figures as strings."""

import pytest

from harness.report.figures import as_printed, gigabytes, megabytes, significant, times, volume


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0, "0"),
        (0.00040951, "0.000410"),
        (0.0123, "0.0123"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (123.4, "123"),
        (12345.6, "12,346"),
        (999.6, "1,000"),
        (1e-9, "0.00000000100"),
        (-1.5, "-1.50"),
    ],
)
def test_a_figure_has_three_significant_digits_and_no_exponent(value, text):
    assert significant(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (0.577, "×0.58"), (1, "×1.0"), (13.07, "×13"), (2_345, "×2,345"), (0.00123, "×0.0012")],
)
def test_a_ratio_has_two_significant_digits(value, text):
    assert times(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, ""), (17_000.0, "17,000"), (45.0, "45"), (0.0332, "0.0332"), (1.5, "1.5")]
)
def test_an_authors_figure_keeps_its_digits_and_gets_none_that_it_never_had(value, text):
    assert as_printed(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (999, "999 B"), (2_048, "2.05 kB"), (210e6, "210 MB"), (5.04e9, "5.04 GB"), (2e12, "2.00 TB")],
)
def test_a_volume_has_the_unit_that_suits_it(value, text):
    assert volume(value) == text


def test_megabytes_and_gigabytes_are_decimal_and_missing_ones_are_empty():
    assert (megabytes(81_600_000), gigabytes(5_040_000_000)) == ("81.6", "5.04")
    assert (megabytes(0), megabytes(999_999), megabytes(1e6), megabytes(None), gigabytes(None)) == (
        "<1",
        "<1",
        "1.00",
        "",
        "",
    )
