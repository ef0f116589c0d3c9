package httpapi

import (
	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// recordVehiclesRead adds the activity entry of a list of vehicles, with the filter and the number of vehicles in the
// answer: one entry for each request, before it is answered [LAW-9].
func (s *server) recordVehiclesRead(c echo.Context, q telematics.VehicleQuery, visible bool, n int) error {
	filter := map[string]any{}
	if q.Agency != 0 {
		filter["agency_id"] = int64(q.Agency)
	}
	for name, value := range map[string]string{"status": string(q.Status), "connectivity": string(q.Connectivity), "q": q.Text} {
		if value != "" {
			filter[name] = value
		}
	}
	entry := callOf(c).line(telematics.VehiclesRead, 0, s.Now())
	entry.Outcome = telematics.Executed
	if visible {
		entry.Agency = q.Agency
	}
	entry.Details = map[string]any{"filter": filter, "vehicles": n}
	return s.History.Add(c.Request().Context(), entry)
}

// recordCommandsRead adds the activity entry of an answer with commands, where one of them has what its unit reported.
// The entry says which ones were asked for.
func (s *server) recordCommandsRead(c echo.Context, commands []telematics.Command, entry telematics.Activity) error {
	vehicles := map[telematics.VehicleID]bool{}
	for _, command := range commands {
		if command.Reported != nil {
			vehicles[command.Vehicle] = true
		}
	}
	if len(vehicles) == 0 {
		return nil
	}
	entry.Outcome = telematics.Executed
	if entry.Details == nil {
		entry.Details = map[string]any{}
	}
	entry.Details["vehicles"] = len(vehicles)
	return s.History.Add(c.Request().Context(), entry)
}
