package httpapi

import (
	"fmt"
	"net/http"

	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

// units answers with units.
type units struct{ *server }

func (u units) list(c *request.Call) error {
	p := c.Page("units")
	found, err := u.Units.ListUnits(c.Ctx(), telematics.UnitQuery{
		Agency: c.QueryAgency(), Connectivity: telematics.PresenceStatus(c.QueryParam("connectivity")),
		Problem: telematics.UnitProblem(c.QueryParam("problem")), Text: c.QueryParam("q"), SigningKey: u.SigningKey(), Page: p.Query(),
	})
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, func(u telematics.ListedUnit) int64 { return int64(u.Vehicle.ID) })
	if err := u.audit.recordList(c, "units", len(listed), "connectivity", "problem", "q"); err != nil {
		return err
	}
	now := c.Now()
	return c.AnswerWith(http.StatusOK,
		request.Plural(len(listed), "unit"),
		resource.List(listed, func(u telematics.ListedUnit) resource.Unit { return resource.NewUnit(u, now) }), meta,
	)
}

func (u units) unknown(c *request.Call) error {
	p := c.Page("unknown_units")
	found, err := u.Units.UnknownUnits(c.Ctx(), p.Query())
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, func(u telematics.UnknownUnit) int64 { return u.No })
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "unit"), resource.List(listed, resource.NewUnknownUnit), meta)
}

func (u units) keyHolders(c *request.Call) error {
	key := c.QueryParam("key")
	found, err := u.Units.KeyHolders(c.Ctx(), key)
	if err != nil {
		return err
	}
	said := found.Holding + found.Missing
	return c.Answer(
		fmt.Sprintf("%d of %d units that report their keys hold this one; %d did not say.", found.Holding, said, found.Unreported),
		resource.KeyHolders{
			Key: key, Holding: found.Holding, Missing: found.Missing, Unreported: found.Unreported,
			MissingUnits: append([]telematics.Unit{}, found.MissingUnits...),
		},
	)
}
