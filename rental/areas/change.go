package areas

import (
	"motorpool/rental"
	"motorpool/telematics"
)

// Change sets or removes one area of an agency.
type Change struct {
	Agency telematics.AgencyID
	rental.Area
	Shape *Shape // nil: remove it
	// The area must have this version, or the change fails with rental.AreaChanged; empty: any, or
	// none.
	Version string
	Entry   telematics.Activity // of the audit log
}
