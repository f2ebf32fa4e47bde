"""Import paths of the documentation's examples; everything is in `aitraining`."""
