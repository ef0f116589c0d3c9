package httpapi

import (
	"fmt"

	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

// units answers with units, of all agencies.
type units struct{ record Units }

// unknown answers GET /admin/units/unknown.
func (u units) unknown(c *call) error {
	p := c.page("unknown_units")
	found, err := u.record.UnknownUnits(c.ctx(), p.query())
	if err != nil {
		return err
	}
	listed, meta := cut(p, found, func(u telematics.UnknownUnit) int64 { return u.No })
	return c.answerWith(plural(len(listed), "unit"), resource.List(listed, resource.NewUnknownUnit), meta)
}

// keyHolders answers GET /admin/units/keys.
func (u units) keyHolders(c *call) error {
	key := c.QueryParam("key")
	found, err := u.record.KeyHolders(c.ctx(), key)
	if err != nil {
		return err
	}
	said := found.Holding + found.Missing
	return c.answer(fmt.Sprintf("%d of %d units that said which keys they hold have this one; %d did not say.", found.Holding, said, found.Unreported), resource.KeyHolders{
		Key: key, Holding: found.Holding, Missing: found.Missing, Unreported: found.Unreported,
		MissingUnits: append([]telematics.Unit{}, found.MissingUnits...),
	})
}
