"""Judges that we run, on a store: their versions, their runs, and what labels say of them.

`versions` makes a judge from practice traces and what a probe found, `runs` chooses its traces and
brings its verdicts into the store, `exams` compares it with labels: scores, pairs, certificates;
`probing` changes traces and sees whether its verdicts change; `suggesting` asks for rules that
would mend its practice verdicts.
"""
