"""Judges, and honest numbers for choosing among their versions.

What a judge is stands in `versions`, what it reads in `prompt`. `baseline` is a judge without a
language model; `selection` splits labels, corrects the score of the best version for the choice,
compares versions on the same traces, and certifies on locked labels.
"""
