package resource

import "motorpool/telematics"

// UnknownUnit is a unit that belongs to no vehicle.
type UnknownUnit struct {
	Unit      telematics.Unit `json:"unit"`
	FirstSeen string          `json:"first_seen"`
	LastSeen  string          `json:"last_seen"`
	Messages  int64           `json:"messages"`
}

// NewUnknownUnit returns a unit that belongs to no vehicle.
func NewUnknownUnit(u telematics.UnknownUnit) UnknownUnit {
	return UnknownUnit{Unit: u.Unit, FirstSeen: Timestamp(u.FirstSeen), LastSeen: Timestamp(u.LastSeen), Messages: u.Messages}
}

// KeyHolders counts the units of vehicles by whether they hold a key.
type KeyHolders struct {
	Key          string            `json:"key"`
	Holding      int               `json:"holding"`
	Missing      int               `json:"missing"`
	Unreported   int               `json:"unreported"`
	MissingUnits []telematics.Unit `json:"missing_units"`
}
