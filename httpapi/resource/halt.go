package resource

import "motorpool/telematics"

// NamedHalt is a halt.
type NamedHalt struct {
	AgencyID *int64 `json:"agency_id"` // null: of all agencies
	Reason   string `json:"reason"`
	By       string `json:"by"`
	Since    string `json:"since"`
}

// NewNamedHalt returns a halt without its effect.
func NewNamedHalt(h telematics.Halt) NamedHalt {
	return NamedHalt{AgencyID: OrNull(int64(h.Agency)), Reason: h.Why, By: h.By, Since: Timestamp(h.Since)}
}

// Halt is a halt in force, with its current effect.
type Halt struct {
	NamedHalt
	Effect *HaltEffect `json:"effect"` // null: it could not be counted in time
}

// NewHalts returns halts with their effects, in the same order; without, if there are none.
func NewHalts(halts []telematics.Halt, effects []telematics.HaltEffect) []Halt {
	list := List(halts, func(h telematics.Halt) Halt { return Halt{NamedHalt: NewNamedHalt(h)} })
	for i, e := range effects {
		list[i].Effect = new(HaltEffect(e))
	}
	return list
}

type HaltEffect struct {
	Vehicles int `json:"vehicles"`
	Withheld int `json:"withheld"`
	InFlight int `json:"in_flight"`
}
