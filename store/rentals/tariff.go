package rentals

// currentTariffs selects the newest version of each tariff of an agency a, as the JSON of a
// rental.Plan. One in another currency than the agency's is none.
const currentTariffs = `
	select t.category, t.tariff || jsonb_build_object('category', t.category, 'version', t.version) as tariff
	from tariffs t
	where t.agency_id = a.id and t.tariff is not null and t.currency = a.currency
		and t.version = (select max(n.version) from tariffs n where n.agency_id = t.agency_id and n.category = t.category)`

// tariffOf selects the tariff of the category of a vehicle v of an agency a, else the agency's for
// other categories; null: none.
const tariffOf = `select t.tariff from (` + currentTariffs + `) t where t.category in (v.category, '') order by t.category desc limit 1`
