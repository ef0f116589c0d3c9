package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// recordBody is a vehicle's record.
type recordBody struct {
	ID         int64                    `json:"id"`
	AgencyID   int64                    `json:"agency_id"`
	Unit       *telematics.Unit         `json:"unit"`
	Protocol   *telematics.Protocol     `json:"protocol"`
	Status     telematics.VehicleStatus `json:"status"`
	Powertrain telematics.Powertrain    `json:"powertrain"`
	descriptionBody
}

// descriptionBody describes a vehicle to people.
type descriptionBody struct {
	PlateNumber string   `json:"plate_number"`
	Brand       string   `json:"brand"`
	Model       string   `json:"model"`
	Year        *int     `json:"year"`
	Color       *string  `json:"color"`
	Category    *string  `json:"category"`
	Image       *string  `json:"image"`
	Features    []string `json:"features"`
}

// vehicleBody is a vehicle and what it is able to do.
type vehicleBody struct {
	recordBody
	Promises     *promisesBody    `json:"promises"`
	Capabilities capabilitiesBody `json:"capabilities"`
	Keys         []string         `json:"keys"` // null: the unit never said
}

type capabilitiesBody struct {
	Commands []telematics.Action `json:"commands"`
	Signals  []string            `json:"signals"`
}

// markerBody is a vehicle with the state that a map needs, under the names of the vehicle status.
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

type markerDiagnosticsBody struct {
	DTCs         []string `json:"dtcs"`          // null: never reported; empty: none
	WarningLamps []string `json:"warning_lamps"` // null: never reported; empty: none
}

func newRecordBody(v telematics.Vehicle) recordBody {
	return recordBody{
		ID: int64(v.ID), AgencyID: int64(v.AgencyID), Unit: orNull(v.Unit), Protocol: protocol(v), Status: v.Status, Powertrain: v.Powertrain,
		descriptionBody: newDescriptionBody(v),
	}
}

func newDescriptionBody(v telematics.Vehicle) descriptionBody {
	return descriptionBody{
		PlateNumber: v.Plate, Brand: v.Brand, Model: v.Model, Year: orNull(v.Year), Color: orNull(v.Color),
		Category: orNull(v.Category), Image: orNull(v.Image), Features: append([]string{}, v.Features...),
	}
}

// protocol is null where there is no unit.
func protocol(v telematics.Vehicle) *telematics.Protocol {
	if v.Unit == "" {
		return nil
	}
	return orNull(cmp.Or(v.Protocol, telematics.DefaultProtocol))
}

// promisesBody is what holds of every command to a unit.
type promisesBody struct {
	Signed       bool `json:"signed"`
	Expiring     bool `json:"expiring"`
	Deduplicated bool `json:"deduplicated"`
	Correlated   bool `json:"correlated"`
	Confirmed    bool `json:"confirmed"`
}

// newPromisesBody returns nil where there is no unit, or this version does not speak its protocol.
func newPromisesBody(v telematics.Vehicle) *promisesBody {
	promises, ok := dialects.Spoken.Promises(v)
	if !ok {
		return nil
	}
	body := promisesBody(promises)
	return &body
}

func newVehicleBody(t telematics.Twin) vehicleBody {
	return vehicleBody{
		recordBody:   newRecordBody(t.Vehicle),
		Promises:     newPromisesBody(t.Vehicle),
		Capabilities: capabilitiesBody{Commands: controls(t), Signals: signals(t)},
		Keys:         t.Contact.Keys,
	}
}

// controls lists the control actions that the vehicle has, in the order of the interface; none
// without a unit.
func controls(t telematics.Twin) []telematics.Action {
	if t.Unit == "" {
		return []telematics.Action{} // nothing could execute them
	}
	actions := slices.Clone(telematics.ControlActions)
	return slices.DeleteFunc(actions, func(a telematics.Action) bool { return !t.Supports(a) || !dialects.Spoken.Carry(t.Vehicle, a) })
}

// signals lists the fields of which the vehicle has ever reported a value, by the names of the
// vehicle status. It has no sensor for those that it only reported as unknown.
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

// vehicles answers with vehicles and their state.
type vehicles struct {
	fleet      Fleet
	places     Places // nil: no address is known
	controller Controller
	audit      *audit
	watches    Watches
	budget     time.Duration // of a refresh
	readBudget time.Duration
}

func (v vehicles) newMarkerBody(t telematics.Twin, now time.Time) markerBody {
	known := t.Snapshot.For(t.Powertrain)
	return markerBody{
		recordBody:   newRecordBody(t.Vehicle),
		Connectivity: markerConnectivityBody{Status: t.Contact.At(now), LastSeen: timestampOrNull(t.Contact.LastSeen)},
		Location:     v.newLocationBody(t.AgencyID, known),
		Telemetry: markerTelemetryBody{
			SpeedKmh: known.Number(telematics.SpeedKmh), Ignition: known.Text(telematics.Ignition), IsLocked: known.Flag(telematics.IsLocked),
			FuelLevelPercent: known.Number(telematics.FuelLevel), BatteryLevelPercent: known.Number(telematics.Battery),
			RemainingRangeKm: known.Number(telematics.RangeKm), ChargingStatus: known.Text(telematics.Charging),
		},
		Diagnostics: markerDiagnosticsBody{DTCs: known.Texts(telematics.DTCs), WarningLamps: known.Texts(telematics.WarningLamps)},
	}
}

// visibleTwin returns the vehicle that the path names. Another agency's reads as one that does not
// exist.
func visibleTwin(
	c *call, read func(context.Context, telematics.VehicleID) (telematics.Twin, error),
) (telematics.Twin, error) {
	twin, err := read(c.ctx(), c.vehicleID())
	if err == nil && !c.actor.Sees(twin.AgencyID) {
		return telematics.Twin{}, telematics.NoSuchVehicle(twin.ID)
	}
	return twin, err
}

// get answers GET /admin/vehicles/{vehicle}.
func (v vehicles) get(c *call) error {
	twin, err := visibleTwin(c, v.fleet.Twin)
	if err != nil {
		return err
	}
	return c.answer("The record of the vehicle.", newVehicleBody(twin))
}

// list answers GET /admin/vehicles.
func (v vehicles) list(c *call) error {
	p := c.page("vehicles")
	agency, visible := c.queryAgency()
	query := telematics.VehicleQuery{
		Agency:       agency,
		Status:       telematics.VehicleStatus(c.QueryParam("status")),
		Connectivity: telematics.PresenceStatus(c.QueryParam("connectivity")),
		Text:         c.QueryParam("q"),
		Page:         p.query(),
	}
	var found []telematics.Twin
	if visible {
		var err error
		if found, err = v.fleet.Twins(c.ctx(), query); err != nil {
			return err
		}
	}
	twins, meta := cut(p, found, func(t telematics.Twin) int64 { return int64(t.ID) })
	if err := v.recordList(c, query, visible, len(twins)); err != nil {
		return err
	}
	now := c.now()
	return c.answerWith(plural(len(twins), "vehicle"),
		bodies(twins, func(t telematics.Twin) markerBody { return v.newMarkerBody(t, now) }), meta)
}

// recordList records a list of vehicles, with the filter and the number of vehicles in the answer.
func (v vehicles) recordList(c *call, q telematics.VehicleQuery, visible bool, n int) error {
	filter := map[string]any{}
	if q.Agency != 0 {
		filter["agency_id"] = int64(q.Agency)
	}
	for name, value := range map[string]string{"status": string(q.Status), "connectivity": string(q.Connectivity), "q": q.Text} {
		if value != "" {
			filter[name] = value
		}
	}
	entry := c.entry(telematics.VehiclesRead, 0)
	entry.Outcome = telematics.Executed
	if visible {
		entry.Agency = q.Agency
	}
	entry.Details = map[string]any{"filter": filter, "vehicles": n}
	return v.audit.read(c, entry)
}

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
