"""The judge against the human labels.

`calibration` corrects the rate, `diagnostics` say how the judge errs, `groups` give the rate by
agent, workflow, model or week, `drift` compares two judges. `report` is all of it,
`recommendations` follow from it.
"""
