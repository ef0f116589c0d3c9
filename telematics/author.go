package telematics

import "github.com/google/uuid"

// Author is who changes something that is no vehicle's, as the activity history names it.
type Author struct {
	Actor
	RequestID uuid.UUID // of the request that did; zero: there was none
}

// OperatorAt is an author who works on the record itself, past the service.
func OperatorAt(account string) Author {
	return Author{Actor: Actor{Subject: account, Role: System}}
}
