package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// statusBody is the vehicle status of the interface, section 2.2. Unknown values are null; groups
// are always objects.
type statusBody struct {
	VehicleID    int64                    `json:"vehicle_id"`
	Status       telematics.VehicleStatus `json:"status"`
	Location     locationBody             `json:"location"`
	Telemetry    telemetryBody            `json:"telemetry"`
	Diagnostics  diagnosticsBody          `json:"diagnostics"`
	Connectivity connectivityBody         `json:"connectivity"`
	OEMData      map[string]any           `json:"oem_data"`
}

type locationBody struct {
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Heading   *float64 `json:"heading"`
	Address   *string  `json:"address"`
	Timestamp *string  `json:"timestamp"`
}

type telemetryBody struct {
	SpeedKmh            *float64      `json:"speed_kmh"`
	MileageKm           *float64      `json:"mileage_km"`
	Ignition            *string       `json:"ignition"`
	Gear                *string       `json:"gear"`
	ParkingBrake        *string       `json:"parking_brake"`
	FuelLevelPercent    *float64      `json:"fuel_level_percent"`
	BatteryLevelPercent *float64      `json:"battery_level_percent"`
	RemainingRangeKm    *float64      `json:"remaining_range_km"`
	ChargingStatus      *string       `json:"charging_status"`
	OnboardVoltageV     *float64      `json:"onboard_voltage_v"`
	IsLocked            *bool         `json:"is_locked"`
	IsEngineRunning     *bool         `json:"is_engine_running"`
	Doors               doorsBody     `json:"doors"`
	Windows             windowsBody   `json:"windows"`
	Sunroof             *string       `json:"sunroof"`
	Seatbelts           seatbeltsBody `json:"seatbelts"`
	KeyStatus           *string       `json:"key_status"`
}

type doorsBody struct {
	FrontLeft  *string `json:"front_left"`
	FrontRight *string `json:"front_right"`
	RearLeft   *string `json:"rear_left"`
	RearRight  *string `json:"rear_right"`
	Trunk      *string `json:"trunk"`
}

type windowsBody struct {
	FrontLeft  *string `json:"front_left"`
	FrontRight *string `json:"front_right"`
	RearLeft   *string `json:"rear_left"`
	RearRight  *string `json:"rear_right"`
}

type seatbeltsBody struct {
	Driver    *string `json:"driver"`
	Passenger *string `json:"passenger"`
}

type diagnosticsBody struct {
	DTCs           []string `json:"dtcs"` // null: never reported; empty: none
	ServiceDueInKm *float64 `json:"service_due_in_km"`
	OilLifePercent *float64 `json:"oil_life_percent"`
	WarningLamps   []string `json:"warning_lamps"` // null: never reported; empty: none
}

type connectivityBody struct {
	Status          telematics.PresenceStatus `json:"status"`
	LastSeen        *string                   `json:"last_seen"`
	SignalQuality   *string                   `json:"signal_quality"`
	FirmwareVersion *string                   `json:"firmware_version"`
}

// statusMeta says how fresh a vehicle status is.
type statusMeta struct {
	Source   string             `json:"source"`
	Sections map[string]*string `json:"sections"` // vehicle time; null: never reported
}

func (v vehicles) newStatusBody(t telematics.Twin, now time.Time) statusBody {
	known := t.Snapshot.For(t.Powertrain)
	return statusBody{
		VehicleID: int64(t.ID), Status: t.Status,
		Location:  v.newLocationBody(t.AgencyID, known),
		Telemetry: newTelemetryBody(known),
		Diagnostics: diagnosticsBody{
			DTCs: known.Texts(telematics.DTCs), WarningLamps: known.Texts(telematics.WarningLamps),
			ServiceDueInKm: known.Number(telematics.ServiceDueKm), OilLifePercent: known.Number(telematics.OilLife),
		},
		Connectivity: connectivityBody{
			Status: t.Contact.At(now), LastSeen: timestampOrNull(t.Contact.LastSeen),
			SignalQuality:   telematics.SignalQuality(known.Number(telematics.RSRP)),
			FirmwareVersion: firmware(known, t.Contact),
		},
		OEMData: known.OEM(),
	}
}

func (v vehicles) newLocationBody(owner telematics.AgencyID, known telematics.Snapshot) locationBody {
	body := locationBody{
		Latitude: known.Number(telematics.Latitude), Longitude: known.Number(telematics.Longitude),
		Heading: known.Number(telematics.Heading),
	}
	if position, ok := known.Position(); ok && v.places != nil {
		body.Address = orNull(v.places.Address(owner, position))
	}
	if at := known.Time(telematics.LocatedAt); at != nil {
		body.Timestamp = timestampOrNull(*at)
	}
	return body
}

func newTelemetryBody(known telematics.Snapshot) telemetryBody {
	return telemetryBody{
		SpeedKmh: known.Number(telematics.SpeedKmh), MileageKm: known.Number(telematics.MileageKm),
		Ignition: known.Text(telematics.Ignition), Gear: known.Text(telematics.Gear), ParkingBrake: known.Text(telematics.ParkBrake),
		FuelLevelPercent: known.Number(telematics.FuelLevel), BatteryLevelPercent: known.Number(telematics.Battery),
		RemainingRangeKm: known.Number(telematics.RangeKm), ChargingStatus: known.Text(telematics.Charging),
		OnboardVoltageV: known.Number(telematics.OnboardV),
		IsLocked:        known.Flag(telematics.IsLocked), IsEngineRunning: known.Flag(telematics.EngineRuns),
		Doors: doorsBody{
			FrontLeft: known.Text(telematics.DoorFrontLeft), FrontRight: known.Text(telematics.DoorFrontRight),
			RearLeft: known.Text(telematics.DoorRearLeft), RearRight: known.Text(telematics.DoorRearRight),
			Trunk: known.Text(telematics.DoorTrunk),
		},
		Windows: windowsBody{
			FrontLeft: known.Text(telematics.WindowFrontLeft), FrontRight: known.Text(telematics.WindowFrontRight),
			RearLeft: known.Text(telematics.WindowRearLeft), RearRight: known.Text(telematics.WindowRearRight),
		},
		Sunroof:   known.Text(telematics.Sunroof),
		Seatbelts: seatbeltsBody{Driver: known.Text(telematics.SeatbeltDriver), Passenger: known.Text(telematics.SeatbeltPassenger)},
		KeyStatus: known.Text(telematics.KeyStatus),
	}
}

// firmware returns the newer of what the unit reported and what it said on connecting.
func firmware(known telematics.Snapshot, contact telematics.Contact) *string {
	reported := known.Text(telematics.Firmware)
	if reported == nil || contact.Firmware != "" && contact.SaidAt.After(known[telematics.Firmware].At) {
		return orNull(contact.Firmware)
	}
	return reported
}

// Sources of a vehicle status.
const (
	fromCache = "cache" // the latest known state
	fromUnit  = "live"  // the unit's answer to this request
)

func newStatusMeta(t telematics.Twin, source string) statusMeta {
	times := t.Snapshot.For(t.Powertrain).SectionTimes()
	meta := statusMeta{Source: source, Sections: map[string]*string{}}
	for _, section := range telematics.Sections {
		meta.Sections[section] = timestampOrNull(times[section])
	}
	return meta
}

// status answers GET /admin/vehicles/{vehicle}/status with the latest known state, or, with
// refresh=true, after the unit has reported. A unit has longer for its answer than a read has.
func (v vehicles) status(c *call) error {
	var refreshed *telematics.Command // nil: the unit was not queried
	if refreshes(c.Request()) {
		var err error
		if refreshed, err = v.refresh(c); err != nil {
			return err
		}
	}
	return within(v.readBudget, func(c *call) error { return v.answerStatus(c, refreshed) })(c)
}

// answerStatus answers with the status, and with what the unit has just reported. It records the
// read before the answer [LAW-9].
func (v vehicles) answerStatus(c *call, refreshed *telematics.Command) error {
	twin, err := visibleTwin(c, v.fleet.Twin)
	if err != nil && asError(err).Code != telematics.VehicleNotFound {
		return err
	}
	if recordErr := v.audit.read(c, statusEntry(c, twin, err)); recordErr != nil {
		return recordErr
	}
	if err != nil {
		return err
	}
	source, message := fromCache, "The latest known status of the vehicle."
	if refreshed != nil {
		if refreshed.Reported != nil {
			source, message = fromUnit, "The status of the vehicle, as its unit has just reported it."
		}
		twin = withReported(twin, refreshed)
		v.watches.Briefly(twin.Vehicle)
	}
	return c.answerWith(message, v.newStatusBody(twin, c.now()), newStatusMeta(twin, source))
}

// statusEntry returns the audit log entry of a read; a zero twin: of an unknown vehicle.
func statusEntry(c *call, twin telematics.Twin, failure error) telematics.Activity {
	entry := c.entry(telematics.StatusRead, c.vehicleID())
	entry.Outcome = telematics.Executed
	if failure != nil {
		entry.Outcome, entry.Code = telematics.NotExecuted, asError(failure).Code
	}
	if twin.ID != 0 {
		entry.Agency = twin.AgencyID
	}
	return entry
}

// refreshes reports whether a request wants the unit to report first. The contract accepts no other
// spelling of true.
func refreshes(r *http.Request) bool {
	return r.Method != http.MethodHead && r.URL.Query().Get("refresh") == "true"
}

// refresh has the vehicle's unit report its state, and returns the command with the report. The
// controller adds the command's audit log entry; the entry of the read that fails with it is
// written here, now or as soon as the audit log is available [LAW-9].
func (v vehicles) refresh(c *call) (*telematics.Command, error) {
	preferences := readPreferences(c.Request().Header)
	preferences.async = false // there would be no state to answer with
	receipt, err := v.controller.Send(c.ctx(), &delivery.Order{
		Vehicle: c.vehicleID(), Action: telematics.ReportState, Budget: cmp.Or(preferences.wait, v.budget),
		Actor: c.actor, RequestID: c.id,
	})
	c.ordered(receipt, err)
	preferences.apply(c)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), v.readBudget)
		defer cancel()
		twin, missing := v.fleet.Record(ctx, c.vehicleID())
		if missing != nil || !c.actor.Sees(twin.AgencyID) {
			twin = telematics.Twin{}
		}
		v.audit.note(ctx, statusEntry(c, twin, err))
	}
	return receipt.Command, err
}

// withReported returns the vehicle with what its unit has just reported. The record has it too,
// unless writing it took too long.
func withReported(t telematics.Twin, c *telematics.Command) telematics.Twin {
	if c.Reported != nil {
		t.Snapshot = telematics.Merge(t.Snapshot, *c.Reported)
	}
	t.Contact = t.Contact.Heard(c.Completed)
	return t
}
