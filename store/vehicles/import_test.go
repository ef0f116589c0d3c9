package vehicles

import (
	"slices"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestImport_CountsWhatItChanges(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	file.Agencies[1].Name, file.Stations[0].Address, file.Vehicles[4].Color = "Spree", "Elsewhere", "pink"
	got, err := p.Import(t.Context(), file)
	if want := (Imported{Agencies: 1, Stations: 1, Vehicles: 1}); err != nil || got != want {
		t.Errorf("Import of three changes = %+v, %v; want %+v", got, err, want)
	}
	if got, err := p.Import(t.Context(), FleetFile{}); err != nil || got != (Imported{}) {
		t.Errorf("Import of an empty file = %+v, %v; want no change", got, err)
	}
	for agency, want := range map[telematics.AgencyID][]telematics.Station{0: file.Stations, 2: file.Stations[3:]} {
		stations, err := p.ListStations(t.Context(), telematics.AgencyQuery{Agency: agency})
		require.NoError(t, err)
		slices.Reverse(stations)
		assert.DeepEqual(t, stations, want, "stations of agency %d", agency)
	}
}
