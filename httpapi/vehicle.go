package httpapi

import (
	"cmp"
	"slices"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// recordBody is a vehicle's record.
type recordBody struct {
	ID          int64                    `json:"id"`
	AgencyID    int64                    `json:"agency_id"`
	Unit        *telematics.Unit         `json:"unit"`
	Protocol    *telematics.Protocol     `json:"protocol"`
	Status      telematics.VehicleStatus `json:"status"`
	Powertrain  telematics.Powertrain    `json:"powertrain"`
	PlateNumber string                   `json:"plate_number"`
	Brand       string                   `json:"brand"`
	Model       string                   `json:"model"`
	Year        *int                     `json:"year"`
	Color       *string                  `json:"color"`
	Category    *string                  `json:"category"`
	Image       *string                  `json:"image"`
	Features    []string                 `json:"features"`
}

// vehicleBody is a vehicle and what it is able to do.
type vehicleBody struct {
	recordBody
	Promises     *promisesBody    `json:"promises"`
	Capabilities capabilitiesBody `json:"capabilities"`
}

type capabilitiesBody struct {
	Commands []telematics.Action `json:"commands"`
	Signals  []string            `json:"signals"`
}

// markerBody is a vehicle with the state that a map needs, in the places that it has in
// the vehicle status.
type markerBody struct {
	recordBody
	Connectivity markerConnectivityBody `json:"connectivity"`
	Location     locationBody           `json:"location"`
	Telemetry    markerTelemetryBody    `json:"telemetry"`
	Diagnostics  markerDiagnosticsBody  `json:"diagnostics"`
}

type markerConnectivityBody struct {
	Status   telematics.PresenceStatus `json:"status"`
	LastSeen *string                   `json:"last_seen"`
}

type markerTelemetryBody struct {
	SpeedKmh            *float64 `json:"speed_kmh"`
	Ignition            *string  `json:"ignition"`
	IsLocked            *bool    `json:"is_locked"`
	FuelLevelPercent    *float64 `json:"fuel_level_percent"`
	BatteryLevelPercent *float64 `json:"battery_level_percent"`
	RemainingRangeKm    *float64 `json:"remaining_range_km"`
	ChargingStatus      *string  `json:"charging_status"`
}

// markerDiagnosticsBody is what makes a vehicle stand out on a map.
type markerDiagnosticsBody struct {
	DTCs         []string `json:"dtcs"`          // null: never reported; empty: none
	WarningLamps []string `json:"warning_lamps"` // null: never reported; empty: none
}

func newRecordBody(v telematics.Vehicle) recordBody {
	return recordBody{
		ID: int64(v.ID), AgencyID: int64(v.AgencyID), Unit: orNull(v.Unit), Protocol: protocol(v), Status: v.Status, Powertrain: v.Powertrain,
		PlateNumber: v.Plate, Brand: v.Brand, Model: v.Model, Year: orNull(v.Year), Color: orNull(v.Color),
		Category: orNull(v.Category), Image: orNull(v.Image), Features: append([]string{}, v.Features...),
	}
}

// protocol is null where there is no unit to speak it.
func protocol(v telematics.Vehicle) *telematics.Protocol {
	if v.Unit == "" {
		return nil
	}
	return orNull(cmp.Or(v.Protocol, telematics.DefaultProtocol))
}

// promisesBody is what the vehicle's unit checks itself.
type promisesBody struct {
	Signed       bool `json:"signed"`
	Expiring     bool `json:"expiring"`
	Deduplicated bool `json:"deduplicated"`
}

// newPromisesBody returns nil where there is no unit, or this version does not speak its protocol.
func newPromisesBody(v telematics.Vehicle) *promisesBody {
	dialect, spoken := telematics.Spoken.Find(v.Protocol)
	if v.Unit == "" || !spoken {
		return nil
	}
	body := promisesBody(dialect.Promises())
	return &body
}

func newVehicleBody(t telematics.Twin) vehicleBody {
	return vehicleBody{
		recordBody:   newRecordBody(t.Vehicle),
		Promises:     newPromisesBody(t.Vehicle),
		Capabilities: capabilitiesBody{Commands: controls(t), Signals: signals(t)},
	}
}

// controls lists the control actions that the vehicle has, in the order of the interface; none without a unit.
func controls(t telematics.Twin) []telematics.Action {
	if t.Unit == "" {
		return []telematics.Action{} // nothing could execute them
	}
	actions := slices.Clone(telematics.ControlActions)
	return slices.DeleteFunc(actions, func(a telematics.Action) bool { return !t.Supports(a) || !telematics.Spoken.Carry(t.Protocol, a) })
}

// signals lists what the vehicle has ever reported a value of, by the names of the vehicle
// status. What it only ever reported as not known, it has no sensor for.
func signals(t telematics.Twin) []string {
	names := []string{}
	for field, reading := range t.Snapshot.For(t.Powertrain) {
		if !reading.Ever() {
			continue
		}
		switch field {
		case telematics.RawCharging, telematics.RawDTCs:
			names = append(names, string(telematics.OEMData)) // where they are shown
		case telematics.RSRP:
			names = append(names, "connectivity.signal_quality") // what is made of it
		default:
			names = append(names, string(field))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (s *server) newMarkerBody(t telematics.Twin) markerBody {
	known := t.Snapshot.For(t.Powertrain)
	return markerBody{
		recordBody:   newRecordBody(t.Vehicle),
		Connectivity: markerConnectivityBody{Status: t.Contact.At(s.Now()), LastSeen: timestampOrNull(t.Contact.LastSeen)},
		Location:     s.newLocationBody(t.AgencyID, known),
		Telemetry: markerTelemetryBody{
			SpeedKmh: known.Number(telematics.SpeedKmh), Ignition: known.Text(telematics.Ignition), IsLocked: known.Flag(telematics.IsLocked),
			FuelLevelPercent: known.Number(telematics.FuelLevel), BatteryLevelPercent: known.Number(telematics.Battery),
			RemainingRangeKm: known.Number(telematics.RangeKm), ChargingStatus: known.Text(telematics.Charging),
		},
		Diagnostics: markerDiagnosticsBody{DTCs: known.Texts(telematics.DTCs), WarningLamps: known.Texts(telematics.WarningLamps)},
	}
}

// twin returns the vehicle that the path names, if the actor may see it. Another
// agency's reads as one that does not exist.
func (s *server) twin(c echo.Context) (telematics.Twin, error) {
	id, err := vehicleParam(c)
	if err != nil {
		return telematics.Twin{}, err
	}
	twin, err := s.Fleet.Twin(c.Request().Context(), id)
	if err == nil && !callOf(c).actor.Sees(twin.AgencyID) {
		err = telematics.NoSuchVehicle(id)
	}
	if err != nil {
		return telematics.Twin{}, err
	}
	return twin, nil
}

// vehicle answers GET /admin/vehicles/{vehicle}.
func (s *server) vehicle(c echo.Context) error {
	twin, err := s.twin(c)
	if err != nil {
		return err
	}
	return s.answer(c, "The record of the vehicle.", newVehicleBody(twin))
}

// vehicles answers GET /admin/vehicles.
func (s *server) vehicles(c echo.Context) error {
	p, err := pageOf(c, "vehicles")
	if err != nil {
		return err
	}
	agency, visible, err := agencyQuery(c)
	if err != nil {
		return err
	}
	query := telematics.VehicleQuery{
		Agency:       agency,
		Status:       telematics.VehicleStatus(c.QueryParam("status")),
		Connectivity: telematics.PresenceStatus(c.QueryParam("connectivity")),
		Text:         c.QueryParam("q"),
		Page:         p.query(),
	}
	var found []telematics.Twin
	if visible {
		found, err = s.Fleet.Twins(c.Request().Context(), query)
	}
	if err != nil {
		return err
	}
	twins, meta := cut(p, found, func(t telematics.Twin) int64 { return int64(t.ID) })
	if err := s.recordVehiclesRead(c, query, visible, len(twins)); err != nil {
		return err
	}
	return s.answerWith(c, counted(len(twins), "vehicle"), bodies(twins, s.newMarkerBody), meta)
}

// agencyQuery returns the agency whose things are asked for, zero for all. It reports
// false where that is an agency whose things the actor does not see.
func agencyQuery(c echo.Context) (telematics.AgencyID, bool, error) {
	asked, err := integerQuery(c, "agency_id")
	if err != nil {
		return 0, false, err
	}
	agency, own := telematics.AgencyID(asked), callOf(c).actor.Agency
	if agency == 0 {
		agency = own
	}
	return agency, own == 0 || own == agency, nil
}

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
