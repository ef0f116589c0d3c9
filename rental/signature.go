package rental

import (
	"time"

	"motorpool/telematics"
)

// KeyState is where an agency's key is in its life.
type KeyState string

const (
	KeyActive   KeyState = "active"
	KeyRetiring KeyState = "retiring" // valid until a date
	KeyRevoked  KeyState = "revoked"
)

// AgencyKey is a secret that an agency's apps sign requests with.
type AgencyKey struct {
	ID         string
	Agency     telematics.AgencyID
	AgencyCode string
	Secret     []byte // 32 bytes
	State      KeyState
	Retires    time.Time // of a retiring key
	Created    time.Time
}
