package httpapi

import (
	"fmt"

	"motorpool/telematics"
)

// units answers with units, of all agencies.
type units struct{ record Units }

// unknownUnitBody is a unit that belongs to no vehicle.
type unknownUnitBody struct {
	Unit      telematics.Unit `json:"unit"`
	FirstSeen string          `json:"first_seen"`
	LastSeen  string          `json:"last_seen"`
	Messages  int64           `json:"messages"`
}

func newUnknownUnitBody(u telematics.UnknownUnit) unknownUnitBody {
	return unknownUnitBody{Unit: u.Unit, FirstSeen: timestamp(u.FirstSeen), LastSeen: timestamp(u.LastSeen), Messages: u.Messages}
}

// unknown answers GET /admin/units/unknown.
func (u units) unknown(c *call) error {
	p := c.page("unknown_units")
	found, err := u.record.UnknownUnits(c.ctx(), p.query())
	if err != nil {
		return err
	}
	listed, meta := cut(p, found, func(u telematics.UnknownUnit) int64 { return u.No })
	return c.answerWith(plural(len(listed), "unit"), bodies(listed, newUnknownUnitBody), meta)
}

// keyHoldersBody counts the units of vehicles by whether they hold a key.
type keyHoldersBody struct {
	Key          string            `json:"key"`
	Holding      int               `json:"holding"`
	Missing      int               `json:"missing"`
	Unreported   int               `json:"unreported"`
	MissingUnits []telematics.Unit `json:"missing_units"`
}

// keyHolders answers GET /admin/units/keys.
func (u units) keyHolders(c *call) error {
	key := c.QueryParam("key")
	found, err := u.record.KeyHolders(c.ctx(), key)
	if err != nil {
		return err
	}
	said := found.Holding + found.Missing
	return c.answer(fmt.Sprintf("%d of %d units that said which keys they hold have this one; %d did not say.", found.Holding, said, found.Unreported), keyHoldersBody{
		Key: key, Holding: found.Holding, Missing: found.Missing, Unreported: found.Unreported,
		MissingUnits: append([]telematics.Unit{}, found.MissingUnits...),
	})
}
