"""A bank of encoders with what each is worth: what label-free verdicts and training recipes are judged on."""
