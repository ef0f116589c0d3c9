package resource

import (
	"cmp"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// Unit is a unit of a vehicle, with its health and problems.
type Unit struct {
	Unit             telematics.Unit          `json:"unit"`
	VehicleID        int64                    `json:"vehicle_id"`
	PlateNumber      string                   `json:"plate_number"`
	AgencyID         int64                    `json:"agency_id"`
	Protocol         telematics.Protocol      `json:"protocol"`
	Connectivity     UnitPresence             `json:"connectivity"`
	FirmwareVersion  *string                  `json:"firmware_version"`
	SignalQuality    *string                  `json:"signal_quality"`
	RSRP             *float64                 `json:"rsrp_dbm"`
	Clock            *UnitClock               `json:"clock"`      // null: no report has shown it
	Reconnects       *int                     `json:"reconnects"` // null: it publishes no presence
	Rejects          []UnitReject             `json:"rejects"`
	RejectedCommands []UnitReject             `json:"rejected_commands"`
	Keys             []string                 `json:"keys"` // null: the unit never said
	Problems         []telematics.UnitProblem `json:"problems"`
}

// UnitClock is the measured error of a unit's clock.
type UnitClock struct {
	ErrorMS    int64  `json:"error_ms"` // negative: it is behind
	MeasuredAt string `json:"measured_at"`
}

// UnitReject counts the rejects for one reason.
type UnitReject struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	LastAt string `json:"last_at"`
}

// NewUnit returns a unit of a vehicle.
func NewUnit(u telematics.ListedUnit, now time.Time) Unit {
	rsrp := u.Snapshot.Number(telematics.RSRP)
	body := Unit{
		Unit: u.Vehicle.Unit, VehicleID: int64(u.Vehicle.ID), PlateNumber: u.Vehicle.Plate, AgencyID: int64(u.Vehicle.AgencyID),
		Protocol:        cmp.Or(u.Vehicle.Protocol, telematics.DefaultProtocol),
		Connectivity:    newPresence(u.Contact, now),
		FirmwareVersion: firmware(u.Snapshot, u.Contact), SignalQuality: telematics.SignalQuality(rsrp), RSRP: rsrp,
		Rejects: List(u.Rejects, newReject), RejectedCommands: List(u.Commands, newReject),
		Keys: u.Contact.Keys, Problems: append([]telematics.UnitProblem{}, u.Problems...),
	}
	if u.Clock != nil {
		body.Clock = &UnitClock{ErrorMS: u.Clock.Ahead.Milliseconds(), MeasuredAt: Timestamp(u.Clock.At)}
	}
	if d, ok := dialects.Spoken.Find(u.Vehicle.Protocol); ok && d.Filters().Presence != "" {
		body.Reconnects = &u.Reconnects
	}
	return body
}

func newReject(t telematics.RejectTally) UnitReject {
	return UnitReject{Reason: t.Reason, Count: t.Count, LastAt: Timestamp(t.Last)}
}

// UnknownUnit is a unit that belongs to no vehicle.
type UnknownUnit struct {
	Unit      telematics.Unit `json:"unit"`
	FirstSeen string          `json:"first_seen"`
	LastSeen  string          `json:"last_seen"`
	Messages  int64           `json:"messages"`
}

// NewUnknownUnit returns a unit that belongs to no vehicle.
func NewUnknownUnit(u telematics.UnknownUnit) UnknownUnit {
	return UnknownUnit{Unit: u.Unit, FirstSeen: Timestamp(u.FirstSeen), LastSeen: Timestamp(u.LastSeen), Messages: u.Messages}
}

// KeyHolders counts the units of vehicles by whether they hold a key.
type KeyHolders struct {
	Key          string            `json:"key"`
	Holding      int               `json:"holding"`
	Missing      int               `json:"missing"`
	Unreported   int               `json:"unreported"`
	MissingUnits []telematics.Unit `json:"missing_units"`
}
