// Package dialects lists the protocols that are built in.
package dialects

import (
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
	v1 "motorpool/telematics/v1"
)

// Spoken lists every dialect that is built in.
var Spoken = telematics.Dialects{v1.Dialect{}, ovms.Dialect{}, teltonika.Dialect{}}
