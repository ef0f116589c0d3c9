package simulator

import (
	"slices"

	"motorpool/telematics"
)

const firmware = "4.2.1"

// AllActions lists what a vehicle with everything declares; CarActions leaves out the top case.
var (
	AllActions = telematics.ControlActions
	CarActions = withoutAction(AllActions, telematics.OpenTopCase)
)

func withoutAction(actions []telematics.Action, action telematics.Action) []telematics.Action {
	return slices.DeleteFunc(slices.Clone(actions), func(a telematics.Action) bool { return a == action })
}

// Hatchback is a parked combustion car that reports every field it can.
func Hatchback(at Point) Body {
	return Body{
		Powertrain: telematics.Combustion, Latitude: at.Latitude, Longitude: at.Longitude, Heading: 270,
		MileageKm: 15230.4, Gear: "P", ParkBrake: true, Immobilizer: Released,
		EnergyPercent: 64, FullRangeKm: 720, OnboardV: 12.6, Locked: true,
		DTCs: []string{"P0420"}, WarningLamps: []string{"tire_failure"}, ServiceDueKm: 4200, OilLife: 61,
		RSRP: -88, SiteRSRP: -88, Firmware: firmware,
	}
}

// ElectricCar is a parked electric car, charging slowly, that reports every field it can.
func ElectricCar(at Point) Body {
	b := Hatchback(at)
	b.Powertrain, b.MileageKm, b.FullRangeKm, b.Heading = telematics.Electric, 8120.7, 390, 90
	b.EnergyPercent, b.Charging, b.ChargePerHour = 42, "charging", 4
	b.DTCs, b.WarningLamps, b.ServiceDueKm, b.OilLife = nil, nil, 11880, 0
	return b
}

// PlugInHybrid is a parked plug-in hybrid, charging, that reports every field it can.
func PlugInHybrid(at Point) Body {
	b := Hatchback(at)
	b.Powertrain, b.MileageKm, b.FullRangeKm = telematics.PlugInHybrid, 31044.8, 610
	b.ChargePercent, b.Charging, b.ChargePerHour = 55, "charging", 20
	b.DTCs, b.WarningLamps, b.ServiceDueKm, b.OilLife = nil, nil, 9020, 83
	return b
}

// Scooter is a parked electric scooter with a top case.
func Scooter(at Point) Body {
	b := ElectricCar(at)
	b.MileageKm, b.FullRangeKm, b.EnergyPercent = 2410.2, 90, 78
	b.Charging, b.HasTopCase, b.ServiceDueKm = "disconnected", true, 590
	b.Unreported = slices.Concat(doors, windows, seatbelts, []telematics.Field{telematics.Sunroof, telematics.Gear, telematics.ParkBrake})
	return b
}

// Van is a parked combustion van that reports no windows.
func Van(at Point) Body {
	b := Hatchback(at)
	b.MileageKm, b.FullRangeKm, b.EnergyPercent = 48915.3, 850, 37
	b.DTCs, b.WarningLamps, b.ServiceDueKm, b.OilLife = nil, []string{"service_due"}, -120, 18
	b.Unreported = append([]telematics.Field{telematics.Sunroof}, windows...)
	return b
}
