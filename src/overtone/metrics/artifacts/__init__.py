"""Grid artifacts: the modes a patch grid excites, their excess, periods, seams and growth."""
