package httpapi

import (
	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// strangerBody is a unit that talks to us and belongs to no vehicle.
type strangerBody struct {
	Unit      telematics.Unit `json:"unit"`
	FirstSeen string          `json:"first_seen"`
	LastSeen  string          `json:"last_seen"`
	Messages  int64           `json:"messages"`
}

func newStrangerBody(s telematics.UnknownUnit) strangerBody {
	return strangerBody{Unit: s.Unit, FirstSeen: timestamp(s.FirstSeen), LastSeen: timestamp(s.LastSeen), Messages: s.Messages}
}

// unknownUnits answers GET /admin/units/unknown.
func (s *server) unknownUnits(c echo.Context) error {
	p, err := pageOf(c, "unknown_units")
	if err != nil {
		return err
	}
	found, err := s.Strangers.Strangers(c.Request().Context(), p.query())
	if err != nil {
		return err
	}
	strangers, meta := cut(p, found, func(s telematics.UnknownUnit) int64 { return s.No })
	return s.answerWith(c, counted(len(strangers), "unit"), bodies(strangers, newStrangerBody), meta)
}
