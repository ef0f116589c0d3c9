package vehicles

import (
	"testing"

	"motorpool/httpapi"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var _ httpapi.Agencies = (*Fleet)(nil)

func TestAgenciesAndStations_AreListed(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for _, statement := range []string{
		`insert into agencies (id, code, name) values (1, 'MUC', 'Munich'), (2, 'BER', 'Berlin')`,
		`insert into stations (id, agency_id, name, address, latitude, longitude)
			values (5, 1, 'Ost', 'Orleansplatz 1', 48.1, 11.6), (6, 2, 'Zoo', 'Zoo 1', 52.5, 13.3), (7, 1, 'West', 'West 1', 48.2, 11.5)`,
		`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities)
			select n, 2, 'available', 'electric', 'B-MP ' || n, 'VW', 'ID.3', 2024, '', '', '', '{}', '{}' from generate_series(1, 3) n`,
	} {
		storetest.Exec(t, p.Pool, statement)
	}
	agencies := func(q telematics.AgencyQuery) []telematics.ListedAgency {
		t.Helper()
		found, err := p.Agencies(t.Context(), q)
		require.NoError(t, err)
		return found
	}
	all := agencies(telematics.AgencyQuery{})
	if len(all) != 2 || all[0].Code != "BER" || all[0].Vehicles != 3 || all[0].Stations != 1 || all[1].Name != "Munich" ||
		all[1].Vehicles != 0 ||
		all[1].Stations != 2 {
		t.Errorf("agencies %+v", all)
	}
	if own := agencies(telematics.AgencyQuery{Agency: 1}); len(own) != 1 || own[0].ID != 1 {
		t.Errorf("agencies of a caller of agency 1: %+v", own)
	}
	if next := agencies(telematics.AgencyQuery{Page: telematics.Page{Before: 2, Limit: 1}}); len(next) != 1 || next[0].ID != 1 {
		t.Errorf("next page %+v", next)
	}
	for query, want := range map[telematics.AgencyQuery][]telematics.StationID{
		{}: {7, 6, 5}, {Agency: 1}: {7, 5}, {Page: telematics.Page{Before: 7, Limit: 1}}: {6},
	} {
		found, err := p.ListStations(t.Context(), query)
		if err != nil || len(found) != len(want) {
			t.Fatalf("%+v: stations %+v, %v", query, found, err)
		}
		for i, station := range found {
			if station.ID != want[i] {
				t.Errorf("%+v: stations %+v, want %v", query, found, want)
			}
		}
	}
}
