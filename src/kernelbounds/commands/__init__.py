"""Commands for one's own data: assume, plan, calibrate, bound and study; one file each."""
