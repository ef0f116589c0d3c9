-- +goose Up

-- +goose StatementBegin
create function plain_text(original text) returns text language sql immutable parallel safe as $$
    -- What people may write differently is equal: letter case, blanks, hyphens and the normal form of
    -- Unicode. Letters with diacritics are divided first, so that it depends on no locale. Go has the
    -- same in telematics.Plain.
    select case when getdatabaseencoding() = 'UTF8' then
        translate(lower(normalize(original, NFKD) collate "C"),
            'ÆÐØÞĐĦŁŊŒŦƁƂƄƆƇƉƊƋƎƏƐƑƓƔƖƗƘƜƝƟƢƤƦƧƩƬƮƱƲƳƵƷƸƼǤǶǷȜȠȢȤȺȻȽȾɁɃɄɅɆɈɊɌɎͰͲͶͿΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩϏϘϚϜϞϠϢϤϦϨϪϬϮϷϺϽϾϿЂЄЅІЈЉЊЋЏАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯѠѢѤѦѨѪѬѮѰѲѴѸѺѼѾҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӀӃӅӇӉӋӍӔӘӠӨӶӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆՇՈՉՊՋՌՍՎՏՐՑՒՓՔՕՖẞ' || U&' -\0009\2010\2012\2013\2014\2015\2212\00AD',
            'æðøþđħłŋœŧɓƃƅɔƈɖɗƌǝəɛƒɠɣɩɨƙɯɲɵƣƥʀƨʃƭʈʊʋƴƶʒƹƽǥƕƿȝƞȣȥⱥȼƚⱦɂƀʉʌɇɉɋɍɏͱͳͷϳαβγδεζηθικλμνξοπρστυφχψωϗϙϛϝϟϡϣϥϧϩϫϭϯϸϻͻͼͽђєѕіјљњћџабвгдежзиклмнопрстуфхцчшщъыьэюяѡѣѥѧѩѫѭѯѱѳѵѹѻѽѿҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӏӄӆӈӊӌӎӕәӡөӷӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯաբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրցւփքօֆß')
    else translate(lower(original collate "C"), ' -', '') end
$$;
-- +goose StatementEnd

-- Null where the row was not written since this migration.
alter table vehicles add column search text;

-- +goose StatementBegin
create function set_vehicle_search() returns trigger language plpgsql as $$
begin
    new.search := concat_ws(chr(10), plain_text(new.plate_number), plain_text(new.brand), plain_text(new.model));
    return new;
end
$$;
-- +goose StatementEnd

create trigger vehicles_search before insert or update on vehicles for each row execute function set_vehicle_search();
