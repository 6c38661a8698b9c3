"""A bank of encoders with labelled outcomes, to judge label-free verdicts and training recipes."""
