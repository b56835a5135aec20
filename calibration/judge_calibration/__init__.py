"""Calibration of a judge: the rate corrected for the errors of its verdicts.

`samples` are the labelled traces and the verdicts of production, `strata` the verdicts as groups.
`post_stratification` and `prediction_powered` need a random sample of production,
`confusion_inversion` and `bayesian` a reference set; `calibrate` runs them and decides which may be
used. `trial_scores` give pass@k and pass^k from verdicts. `groups` share one calibration, `bias`
says how a judge errs, `reviewer_error` what the errors of reviewers do to the rate,
`label_planning` how many labels are needed.
"""
