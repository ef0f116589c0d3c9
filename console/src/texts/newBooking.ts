// The texts of making a booking, and of the choice of its vehicle, which load with them.
const en = {
  title: 'Make a booking',
  start: 'Start',
  end: 'End',
  pickup: 'Picked up at',
  dropoff: 'Brought back to',
  same: 'the same station',
  then: 'The client needs a card. It is charged when the booking starts, at the price of now.',
  unknownClient: 'The client is not known: it has neither a card nor a booking here. Is its name right?',
  free: (n: number) => (n === 1 ? '1 vehicle is free then.' : `${n} vehicles are free then.`),
  notFree: 'The vehicle cannot be booked for this time: it is booked, in maintenance, or has no price.',
  costs: (total: string, deposit: string) => `Price: ${total}${deposit ? `, and a deposit of ${deposit}` : ''}.`,
};

const de: typeof en = {
  title: 'Buchung anlegen',
  start: 'Beginn',
  end: 'Ende',
  pickup: 'Abgeholt bei',
  dropoff: 'Zurückgebracht nach',
  same: 'derselben Station',
  then: 'Der Kunde braucht eine Karte. Abgebucht wird, wenn die Buchung beginnt, zum Preis von jetzt.',
  unknownClient: 'Der Kunde ist nicht bekannt: Er hat hier weder eine Karte noch eine Buchung. Stimmt der Name?',
  free: (n) => (n === 1 ? '1 Fahrzeug ist dann frei.' : `${n} Fahrzeuge sind dann frei.`),
  notFree: 'Das Fahrzeug ist für diese Zeit nicht buchbar: Es ist gebucht, in Wartung, oder hat keinen Preis.',
  costs: (total, deposit) => `Preis: ${total}${deposit ? `, und eine Kaution von ${deposit}` : ''}.`,
};

export const newBookingTexts = { en, de };
