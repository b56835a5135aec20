"""What files and stores say of an agent's behaviour.

`tools` is of a file of conversations, `grading` of runs and graders written as code.
"""
