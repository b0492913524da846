"""Commands for one's own data: assume, plan, calibrate and bound; one file each."""
