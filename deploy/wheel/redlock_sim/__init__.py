"""The command redlock-sim, and a pytest plugin that makes each scenario a test."""
