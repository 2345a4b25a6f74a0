// Labels that look the same have one key, that of `label_key` in the package.
const EMOJI = String.raw`(?![#*0-9])[\p{Emoji}\u{1f000}-\u{1faff}]`;
const TEXT = String.raw`(?!\p{Emoji_Presentation})\p{Emoji}`; // emoji whose default is text
const JOINING = String.raw`[\u0620\u0626\u0628\u062a-\u062e\u0633-\u0647\u0649\u064a\u066e\u066f\u0678-\u0687\u069a-\u06bf\u06c1\u06c2\u06cc\u06ce\u06d0\u06d1\u06fa-\u06fc\u06ff\u0712-\u0714\u071a-\u0727\u0729\u072b\u072d\u072e\u074e-\u0758\u075c-\u077f\u07ca-\u07ea\u08a0-\u08c8][\u064b-\u065f\u0670]{0,2}`;
const JOINED = String.raw`[\u0620\u0622-\u064a\u066e-\u06d3\u06d5\u06fa-\u06ff\u0710-\u077f\u07ca-\u08c8]`;
const VIRAMA = String.raw`[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u17d2]`;
const HAN = String.raw`\u3400-\u9fff\uf900-\ufaff\u{20000}-\u{3ffff}`;
const KEPT = [
  String.raw`\u{1f3f4}[\u{e0030}-\u{e007f}]{1,7}`,
  String.raw`${EMOJI}\u200d(?=${EMOJI})|${TEXT}\ufe0f|(?!${TEXT})${EMOJI}\ufe0e`,
  String.raw`${VIRAMA}(?:\u200d|\u200c(?=[\p{L}\p{N}_]))|[\u200c\u200d](?=${VIRAMA})`,
  String.raw`${JOINING}(?:\u200c(?=${JOINED})|\u200d(?!${JOINED}))`,
  String.raw`[\u1820-\u18aa][\u180b-\u180f]|[${HAN}][\u{e0100}-\u{e01ef}]`,
  String.raw`[\u1000-\u109f\u2229-\u22ff\u2a00-\u2aff\u3001\u3002\uff01-\uff1f${HAN}][\ufe00-\ufe02]`,
];
const REMOVED = [
  String.raw`(\u200d.)\ufe0f|\ufe0f(?=\u200d${EMOJI}|[\u20e3\u{1f3fb}-\u{1f3ff}])`,
  String.raw`(${KEPT.join("|")})|[\p{DI}\ufff9-\ufffb]`,
].map((pattern) => new RegExp(pattern, "gu"));

export function labelKey(label) {
  if (/^.{1201}/su.test(label)) return label; // normalisation takes quadratic time
  const seen = REMOVED.reduce((text, each) => text.replace(each, "$1"), label.normalize());
  const spaced = seen.normalize().replace(/[\p{Zs}\u2028\u2029\u2800]+/gu, " ");
  return spaced.replace(/^ | $/g, "");
}
