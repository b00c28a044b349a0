"""Shapes of data: one dataset per shape, each about something that slows some clients and not others.

Values are seeded and ordinary. Their tables have no key, and types according to
`harness.datasets.specification.Column`. Each module gives its bytes per row in Arrow, so that an experiment can use
frames of equal size.
"""
