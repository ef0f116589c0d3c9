package resource

import (
	"time"

	"motorpool/telematics"
)

// Status is the vehicle status of the interface, section 2.2. Unknown values are null; groups
// are always objects.
type Status struct {
	VehicleID    int64                    `json:"vehicle_id"`
	Status       telematics.VehicleStatus `json:"status"`
	Location     Location                 `json:"location"`
	Telemetry    Telemetry                `json:"telemetry"`
	Diagnostics  Diagnostics              `json:"diagnostics"`
	Connectivity Connectivity             `json:"connectivity"`
	OEMData      map[string]any           `json:"oem_data"`
}

type Location struct {
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Heading   *float64 `json:"heading"`
	Address   *string  `json:"address"`
	Timestamp *string  `json:"timestamp"`
}

type Telemetry struct {
	SpeedKmh            *float64  `json:"speed_kmh"`
	MileageKm           *float64  `json:"mileage_km"`
	Ignition            *string   `json:"ignition"`
	Gear                *string   `json:"gear"`
	ParkingBrake        *string   `json:"parking_brake"`
	FuelLevelPercent    *float64  `json:"fuel_level_percent"`
	BatteryLevelPercent *float64  `json:"battery_level_percent"`
	RemainingRangeKm    *float64  `json:"remaining_range_km"`
	ChargingStatus      *string   `json:"charging_status"`
	OnboardVoltageV     *float64  `json:"onboard_voltage_v"`
	IsLocked            *bool     `json:"is_locked"`
	IsEngineRunning     *bool     `json:"is_engine_running"`
	Doors               Doors     `json:"doors"`
	Windows             Windows   `json:"windows"`
	Sunroof             *string   `json:"sunroof"`
	Seatbelts           Seatbelts `json:"seatbelts"`
	KeyStatus           *string   `json:"key_status"`
}

type Doors struct {
	FrontLeft  *string `json:"front_left"`
	FrontRight *string `json:"front_right"`
	RearLeft   *string `json:"rear_left"`
	RearRight  *string `json:"rear_right"`
	Trunk      *string `json:"trunk"`
}

type Windows struct {
	FrontLeft  *string `json:"front_left"`
	FrontRight *string `json:"front_right"`
	RearLeft   *string `json:"rear_left"`
	RearRight  *string `json:"rear_right"`
}

type Seatbelts struct {
	Driver    *string `json:"driver"`
	Passenger *string `json:"passenger"`
}

type Diagnostics struct {
	DTCs           []string `json:"dtcs"` // null: never reported; empty: none
	ServiceDueInKm *float64 `json:"service_due_in_km"`
	OilLifePercent *float64 `json:"oil_life_percent"`
	WarningLamps   []string `json:"warning_lamps"` // null: never reported; empty: none
}

type Connectivity struct {
	Status          telematics.PresenceStatus `json:"status"`
	LastSeen        *string                   `json:"last_seen"`
	SignalQuality   *string                   `json:"signal_quality"`
	FirmwareVersion *string                   `json:"firmware_version"`
}

// StatusMeta is the source and the age of a vehicle status.
type StatusMeta struct {
	Source   string             `json:"source"`
	Sections map[string]*string `json:"sections"` // vehicle time; null: never reported
	Older    map[string]string  `json:"older"`    // of fields that are older than their section
	Stored   bool               `json:"state_stored"`
}

// NewStatus returns the status of a vehicle. address is that of its position; nil: unknown.
func NewStatus(t telematics.Twin, address *string, now time.Time) Status {
	known := t.Snapshot.For(t.Powertrain)
	return Status{
		VehicleID: int64(t.ID), Status: t.Status,
		Location:  newLocation(known, address),
		Telemetry: newTelemetry(known),
		Diagnostics: Diagnostics{
			DTCs: known.Texts(telematics.DTCs), WarningLamps: known.Texts(telematics.WarningLamps),
			ServiceDueInKm: known.Number(telematics.ServiceDueKm), OilLifePercent: known.Number(telematics.OilLife),
		},
		Connectivity: Connectivity{
			Status: t.Contact.At(now), LastSeen: TimestampOrNull(t.Contact.LastSeen),
			SignalQuality:   telematics.SignalQuality(known.Number(telematics.RSRP)),
			FirmwareVersion: firmware(known, t.Contact),
		},
		OEMData: known.OEM(),
	}
}

func newLocation(known telematics.Snapshot, address *string) Location {
	body := Location{
		Latitude: known.Number(telematics.Latitude), Longitude: known.Number(telematics.Longitude),
		Heading: known.Number(telematics.Heading), Address: address,
	}
	if at := known.Time(telematics.LocatedAt); at != nil {
		body.Timestamp = TimestampOrNull(*at)
	}
	return body
}

func newTelemetry(known telematics.Snapshot) Telemetry {
	return Telemetry{
		SpeedKmh: known.Number(telematics.SpeedKmh), MileageKm: known.Number(telematics.MileageKm),
		Ignition: known.Text(telematics.Ignition), Gear: known.Text(telematics.Gear), ParkingBrake: known.Text(telematics.ParkBrake),
		FuelLevelPercent: known.Number(telematics.FuelLevel), BatteryLevelPercent: known.Number(telematics.Battery),
		RemainingRangeKm: known.Number(telematics.RangeKm), ChargingStatus: known.Text(telematics.Charging),
		OnboardVoltageV: known.Number(telematics.OnboardV),
		IsLocked:        known.Flag(telematics.IsLocked), IsEngineRunning: known.Flag(telematics.EngineRuns),
		Doors: Doors{
			FrontLeft: known.Text(telematics.DoorFrontLeft), FrontRight: known.Text(telematics.DoorFrontRight),
			RearLeft: known.Text(telematics.DoorRearLeft), RearRight: known.Text(telematics.DoorRearRight),
			Trunk: known.Text(telematics.DoorTrunk),
		},
		Windows: Windows{
			FrontLeft: known.Text(telematics.WindowFrontLeft), FrontRight: known.Text(telematics.WindowFrontRight),
			RearLeft: known.Text(telematics.WindowRearLeft), RearRight: known.Text(telematics.WindowRearRight),
		},
		Sunroof:   known.Text(telematics.Sunroof),
		Seatbelts: Seatbelts{Driver: known.Text(telematics.SeatbeltDriver), Passenger: known.Text(telematics.SeatbeltPassenger)},
		KeyStatus: known.Text(telematics.KeyStatus),
	}
}

// firmware returns the newer version of those in the unit's reports and in its presence.
func firmware(known telematics.Snapshot, contact telematics.Contact) *string {
	if isFirmwareOfContact(known, contact) {
		return OrNull(contact.Firmware)
	}
	return known.Text(telematics.Firmware)
}

func isFirmwareOfContact(known telematics.Snapshot, contact telematics.Contact) bool {
	return known.Text(telematics.Firmware) == nil || contact.Firmware != "" && contact.SaidAt.After(known.Of(telematics.Firmware).At)
}

// NewStatusMeta returns the source and the age of a vehicle status.
func NewStatusMeta(t telematics.Twin, source string) StatusMeta {
	known := t.Snapshot.For(t.Powertrain)
	times := known.SectionTimes()
	meta := StatusMeta{Source: source, Sections: map[string]*string{}, Older: map[string]string{}, Stored: !t.Unstored}
	for _, section := range telematics.Sections {
		meta.Sections[section] = TimestampOrNull(times[section])
	}
	for field, at := range known.Older() {
		meta.Older[nameInStatus(field)] = Timestamp(at)
	}
	if isFirmwareOfContact(known, t.Contact) && !t.Contact.SaidAt.Before(times[telematics.Firmware.Section()]) {
		delete(meta.Older, telematics.Firmware.String())
	}
	return meta
}

// nameInStatus returns the path of a field in the vehicle status, which has the signal in words.
func nameInStatus(f telematics.Field) string {
	if f == telematics.RSRP {
		return "connectivity.signal_quality"
	}
	return f.String()
}
