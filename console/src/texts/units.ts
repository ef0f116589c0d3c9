// The texts of the page of units, which load with it.
import { coded } from '../text';

const en = {
  views: { trouble: 'Need attention', all: 'All units', rejects: 'Rejected messages', unknown: 'Unknown units' } as Record<
    string,
    string
  >,
  search: 'Serial, plate, firmware',
  problem: 'Problem',
  readAgain: 'Read again',
  asOf: (age: string) => `read ${age}`,
  columns: {
    attention: 'Needs attention',
    clock: 'Clock',
    signal: 'Signal',
    firmware: 'Firmware',
    reconnects: 'Reconnects',
    rejected: 'Rejected',
    keys: 'Keys',
    unit: 'Unit',
    reason: 'Rejected because',
    count: 'How often',
    last: 'Last',
    firstSeen: 'First heard',
    lastSeen: 'Last heard',
    messages: 'Messages',
  },
  day: 'Reconnects and what was rejected are those of the last 24 hours.',
  fine: 'nothing',
  notKnown: 'not known',
  neverSaid: 'never said',
  noKeys: 'none',
  messages: (n: number) => (n === 1 ? '1 message' : `${n} messages`),
  commands: (n: number) => (n === 1 ? '1 command' : `${n} commands`),
  times: (n: number, age: string) => `${n} ×, last ${age}`,
  measured: (age: string) => `measured ${age}`,
  clockRight: 'right',
  atMost: (off: string) => `at most ${off}`,
  duration: {
    seconds: (n: string) => `${n} s`,
    minutes: (n: string) => `${n} min`,
    hours: (n: string) => `${n} h`,
    days: (n: string) => `${n} d`,
  },
  signals: coded({ strong: 'strong', moderate: 'moderate', weak: 'weak', none: 'none' }) as Record<string, string>,
  todo: 'What to do:',
  /** What a problem is called in a filter. */
  problems: coded({
    any: 'any',
    never_seen: 'never heard',
    silent: 'silent',
    key: 'lacks the signing key',
    commands: 'rejects commands',
    clock: 'wrong clock',
    rejects: 'rejected messages',
    reconnects: 'unstable connection',
    signal: 'no signal',
  }) as Record<string, string>,
  /** What is the case with a unit. */
  facts: coded({
    never_seen: 'Never heard',
    silent: (age: string) => `Silent, last heard ${age}`,
    key: 'Lacks the key that signs commands',
    commands: (n: number) => (n === 1 ? 'Rejected 1 command' : `Rejected ${n} commands`),
    clock: (off: string) => `Clock ${off}`,
    rejects: (n: number) => (n === 1 ? '1 message or value rejected' : `${n} messages or values rejected`),
    reconnects: (n: number) => `Reconnected ${n} times`,
    signal: 'No signal',
  }),
  meanings: {
    never_seen: 'The unit has sent nothing since it was assigned to this vehicle. No command can reach it.',
    silent: 'The unit sent nothing for an hour, and did not announce sleep. Commands are refused, or end as not known.',
    key: 'The unit reports which keys it trusts, and the active signing key is not among them. It rejects every command.',
    commands: 'The unit received commands and rejected them, for the reasons below.',
    clock: 'Its clock is fast, so commands seem late or expired: the unit rejects them. Its reports seem newer than they are.',
    clock_slow:
      'Its clock is slow, so commands seem to come from the future: the unit rejects them. Its reports seem old, and may be ignored.',
    rejects: 'The unit sends messages that are not valid. What could not be read is missing in the state of the vehicle.',
    reconnects: 'The connection breaks more than once an hour. Commands that are sent meanwhile take longer, or end as not known.',
    signal: 'The last reported signal was too weak for a connection to last.',
  } as Record<string, string>,
  todos: {
    never_seen:
      'Compare the serial with that on the unit. Then check its login at the MQTT broker (motorpool unit list), ' +
      'its SIM card and its power.',
    silent:
      'Open the vehicle: where was it last, and how was its 12 V battery? A car park without reception resolves itself; ' +
      'an empty battery or an expired SIM card does not.',
    key: 'Bring it the public keys (motorpool keys export), with its maker’s configuration tool. It reports its keys when it has them.',
    commands: 'Look up the reason. Signature and audience: the unit has wrong keys or another serial. Clock: let it set its clock.',
    clock:
      'Let the unit set its clock from satellites or the network: park it under the open sky, or restart it. If it happens again, ' +
      'tell its maker.',
    rejects: 'It is mostly the firmware: update it, or tell its maker the reasons. “Other protocol” is a mistake in the fleet file.',
    reconnects: 'Check antenna and plug. Two units with the same serial disconnect each other: look for a second one.',
    signal: 'Move the vehicle, or check the antenna.',
  } as Record<string, string>,
  /** Why something of a message was not taken. */
  rejects: {
    malformed: 'unreadable message',
    too_large: 'message over 64 KiB',
    retained: 'message published as retained',
    over_allowance: 'too many messages',
    protocol_mismatch: 'other protocol than in the fleet file',
    wrong_time: 'time missing or impossible',
    wrong_type: 'value of a wrong type',
    out_of_range: 'value out of range',
    unknown_word: 'unknown value',
    other: 'incomplete or inconsistent value',
  } as Record<string, string>,
  noTrouble: 'No unit needs attention.',
  noTroubleMore:
    'Silence, a wrong clock, rejected messages and commands, missing keys, lost connections and bad signal would be listed here, ' +
    'each with what to do.',
  noRejects: 'Nothing was rejected in the last 24 hours.',
  noUnits: 'No vehicle has a unit yet. Name units in the fleet file, and import it:',
  noMatch: 'No unit matches. Remove a filter.',
  unknown: {
    intro:
      'These units send messages and belong to no vehicle: they were installed without a record, or should have been switched off. ' +
      'Nothing that they report is kept.',
    none: 'Every unit that sends messages belongs to a vehicle.',
    noneMore: 'A unit that is installed before it is in the fleet file appears here, with its serial.',
    forbidden: 'Units without a vehicle belong to no agency, so only an administrator of all agencies sees them.',
    assign: 'Assign',
    title: (unit: string) => `Unit ${unit}`,
    find: 'Find out which vehicle it is in: the serial is printed on the unit.',
    replaces: (unit: string) => `It replaces the unit ${unit}, which then belongs to no vehicle.`,
    protocol: 'What it speaks',
    sameProtocol: 'what the vehicle’s unit spoke before, else v1',
    assigned: (unit: string) => `The unit ${unit} is assigned to`,
    mayNot: 'Only an administrator assigns units.',
    remove: 'It should not be there? Remove its login; its connection ends within a second:',
  },
};

export type UnitWords = typeof en;

const de: UnitWords = {
  views: { trouble: 'Zu prüfen', all: 'Alle Einheiten', rejects: 'Abgelehnte Meldungen', unknown: 'Unbekannte Einheiten' },
  search: 'Seriennummer, Kennzeichen, Firmware',
  problem: 'Problem',
  readAgain: 'Neu lesen',
  asOf: (age) => `gelesen ${age}`,
  columns: {
    attention: 'Zu prüfen',
    clock: 'Uhr',
    signal: 'Signal',
    firmware: 'Firmware',
    reconnects: 'Neu verbunden',
    rejected: 'Abgelehnt',
    keys: 'Schlüssel',
    unit: 'Einheit',
    reason: 'Abgelehnt, weil',
    count: 'Wie oft',
    last: 'Zuletzt',
    firstSeen: 'Zuerst gehört',
    lastSeen: 'Zuletzt gehört',
    messages: 'Meldungen',
  },
  day: 'Neue Verbindungen und Abgelehntes zählen für die letzten 24 Stunden.',
  fine: 'nichts',
  notKnown: 'nicht bekannt',
  neverSaid: 'nie gemeldet',
  noKeys: 'keine',
  messages: (n) => (n === 1 ? '1 Meldung' : `${n} Meldungen`),
  commands: (n) => (n === 1 ? '1 Befehl' : `${n} Befehle`),
  times: (n, age) => `${n} ×, zuletzt ${age}`,
  measured: (age) => `gemessen ${age}`,
  clockRight: 'richtig',
  atMost: (off) => `höchstens ${off}`,
  duration: {
    seconds: (n) => `${n} s`,
    minutes: (n) => `${n} min`,
    hours: (n) => `${n} h`,
    days: (n) => `${n} Tage`,
  },
  signals: coded({ strong: 'stark', moderate: 'mittel', weak: 'schwach', none: 'keines' }),
  todo: 'Was zu tun ist:',
  problems: coded({
    any: 'irgendeines',
    never_seen: 'nie gehört',
    silent: 'stumm',
    key: 'ohne Signierschlüssel',
    commands: 'lehnt Befehle ab',
    clock: 'falsche Uhr',
    rejects: 'abgelehnte Meldungen',
    reconnects: 'instabile Verbindung',
    signal: 'kein Signal',
  }),
  facts: coded({
    never_seen: 'Nie gehört',
    silent: (age) => `Stumm, zuletzt gehört ${age}`,
    key: 'Ohne den Schlüssel, der Befehle signiert',
    commands: (n) => (n === 1 ? 'Hat 1 Befehl abgelehnt' : `Hat ${n} Befehle abgelehnt`),
    clock: (off) => `Uhr geht ${off}`,
    rejects: (n) => (n === 1 ? '1 Meldung oder Wert abgelehnt' : `${n} Meldungen oder Werte abgelehnt`),
    reconnects: (n) => `${n}-mal neu verbunden`,
    signal: 'Kein Signal',
  }),
  meanings: {
    never_seen: 'Die Einheit hat nichts gesendet, seit sie diesem Fahrzeug zugeordnet ist. Kein Befehl erreicht sie.',
    silent:
      'Seit einer Stunde hat die Einheit nichts gesendet, und sie hat keinen Schlaf angekündigt. ' +
      'Befehle werden abgelehnt oder enden als nicht bekannt.',
    key: 'Die Einheit meldet, welchen Schlüsseln sie vertraut, und der jetzt signierende ist nicht dabei. Sie lehnt jeden Befehl ab.',
    commands: 'Die Einheit hat Befehle erhalten und sich geweigert, sie auszuführen, aus den Gründen unten.',
    clock:
      'Nach ihrer vorgehenden Uhr kommen Befehle zu spät oder sind abgelaufen: Die Einheit lehnt sie ab. Ihre Meldungen wirken neuer, ' +
      'als sie sind.',
    clock_slow:
      'Nach ihrer nachgehenden Uhr kommen Befehle aus der Zukunft: Die Einheit lehnt sie ab. ' +
      'Ihre Meldungen wirken alt und zählen womöglich nicht.',
    rejects: 'Die Einheit sendet ungültige Meldungen. Was nicht lesbar war, fehlt im Zustand des Fahrzeugs.',
    reconnects: 'Die Verbindung bricht öfter als einmal in der Stunde ab. Befehle dauern dann länger oder enden als nicht bekannt.',
    signal: 'Das zuletzt gemeldete Signal war zu schwach für eine dauerhafte Verbindung.',
  },
  todos: {
    never_seen:
      'Vergleichen Sie die Seriennummer mit der auf der Einheit. Prüfen Sie dann die Anmeldung beim MQTT-Broker (motorpool unit ' +
      'list), die SIM-Karte und die Stromversorgung.',
    silent:
      'Öffnen Sie das Fahrzeug: Wo war es zuletzt, und wie stand es um die 12-V-Batterie? Eine Tiefgarage ohne Empfang erledigt sich ' +
      'von selbst, eine leere Batterie oder eine abgelaufene SIM-Karte nicht.',
    key: 'Bringen Sie ihr die öffentlichen Schlüssel (motorpool keys export), so wie der Hersteller es vorsieht. Sie meldet, ' +
      'sobald sie sie hat.',
    commands:
      'Lesen Sie den Grund. Signatur und Adressat: Die Einheit hat falsche Schlüssel oder eine andere Seriennummer. Uhr: ' +
      'Lassen Sie sie ihre Uhr stellen.',
    clock:
      'Lassen Sie die Einheit ihre Uhr von Satelliten oder Netz stellen: unter freiem Himmel parken oder neu starten. ' +
      'Kommt es wieder vor, melden Sie es dem Hersteller.',
    rejects:
      'Meist ist es die Firmware: Aktualisieren Sie sie, oder nennen Sie dem Hersteller die Gründe. ' +
      '«Anderes Protokoll» ist ein Fehler in der Flottendatei.',
    reconnects:
      'Prüfen Sie Antenne und Stecker. Zwei Einheiten mit derselben Seriennummer trennen einander: Suchen Sie nach einer zweiten.',
    signal: 'Stellen Sie das Fahrzeug um, oder prüfen Sie die Antenne.',
  },
  rejects: {
    malformed: 'unlesbare Meldung',
    too_large: 'Meldung über 64 KiB',
    retained: 'Meldung als «retained» gesendet',
    over_allowance: 'zu viele Meldungen',
    protocol_mismatch: 'anderes Protokoll als in der Flottendatei',
    wrong_time: 'Zeit fehlt oder ist unmöglich',
    wrong_type: 'Wert vom falschen Typ',
    out_of_range: 'Wert außerhalb des Bereichs',
    unknown_word: 'unbekannter Wert',
    other: 'unvollständiger oder widersprüchlicher Wert',
  },
  noTrouble: 'Keine Einheit ist zu prüfen.',
  noTroubleMore:
    'Hier stünden stumme Einheiten, falsche Uhren, abgelehnte Meldungen und Befehle, fehlende Schlüssel, ' +
    'abgerissene Verbindungen und schlechtes Signal, jeweils mit dem, was zu tun ist.',
  noRejects: 'In den letzten 24 Stunden wurde nichts abgelehnt.',
  noUnits: 'Noch hat kein Fahrzeug eine Einheit. Nennen Sie Einheiten in der Flottendatei, und importieren Sie sie:',
  noMatch: 'Keine Einheit passt. Entfernen Sie einen Filter.',
  unknown: {
    intro:
      'Diese Einheiten senden Meldungen und gehören zu keinem Fahrzeug: Sie wurden eingebaut und nicht eingetragen, ' +
      'oder hätten abgeschaltet werden sollen. Was sie melden, wird nicht aufbewahrt.',
    none: 'Jede Einheit, die sendet, gehört zu einem Fahrzeug.',
    noneMore: 'Eine Einheit, die eingebaut wird, bevor sie in der Flottendatei steht, erscheint hier mit ihrer Seriennummer.',
    forbidden: 'Einheiten ohne Fahrzeug gehören zu keiner Agentur, also sieht sie nur, wer Administrator aller Agenturen ist.',
    assign: 'Zuordnen',
    title: (unit) => `Einheit ${unit}`,
    find: 'Finden Sie heraus, in welchem Fahrzeug sie steckt: Die Seriennummer ist aufgedruckt.',
    replaces: (unit) => `Sie ersetzt die Einheit ${unit}, die dann zu keinem Fahrzeug gehört.`,
    protocol: 'Was sie spricht',
    sameProtocol: 'was die Einheit des Fahrzeugs bisher sprach, sonst v1',
    assigned: (unit) => `Die Einheit ${unit} ist zugeordnet:`,
    mayNot: 'Nur Administratoren ordnen Einheiten zu.',
    remove: 'Sie dürfte nicht da sein? Entziehen Sie ihr die Anmeldung; ihre Verbindung endet binnen einer Sekunde:',
  },
};

export const unitTexts = { en, de };
