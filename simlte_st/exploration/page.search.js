"use strict";
// Search the documents of the page as `simlte search` does: by words (BM25) and, if the model is a static one, by
// vectors. The functions mirror simlte_st/words/analyzer.py, simlte_st/search/ and BERT's tokenizer.

// Words and their terms, as in words/analyzer.py.
const CHARACTER = String.raw`[\p{L}\p{M}\p{N}\p{Pc}\p{Default_Ignorable_Code_Point}]`;
const UNSPACED = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tai_Tham", "Javanese", "Balinese"]
  .map((script) => String.raw`\p{Script=${script}}`).join("") + String.raw`\u30fc\u3005`;
const WORD = new RegExp(
  String.raw`(?:(?<![^\s\(\[\{\/"'\u201c\u2018])\.(?=\p{L}{2}))?${CHARACTER}+`
  + String.raw`(?:(?:[.@'\u2019\u00b7]|[\-\/](?=\S{0,40}\p{N})|(?<=\p{N})[,:\u066b\u066c](?=\p{N}))${CHARACTER}+)*`
  + String.raw`(?:(?<=\p{L})(?:\+\+(?![\p{L}+])|[+#](?![\p{L}\p{N}+#])))?`
  + String.raw`|\p{RI}\p{RI}|[\p{Extended_Pictographic}--[\u0000-\u21ff\u3030\u303d\u3297\u3299]]`, "gv");
const PART = new RegExp(
  String.raw`(?<unspaced>[${UNSPACED}]+)|(?<hangul>\p{Script=Hangul}+)`
  + String.raw`|(?:[${CHARACTER}--[\u200c${UNSPACED}\p{Script=Hangul}]]|(?<!\p{Script=Arabic})\u200c)+`, "gv");
const UNIT = new RegExp(String.raw`[${UNSPACED}]\p{M}*`, "gv");
const SPACED = new RegExp(String.raw`^[^${UNSPACED}\p{Script=Hangul}]`, "v");
const PLAIN = /^[\p{L}\p{M}]+$/u;
const OPTIONAL_SIGNS = new RegExp(
  String.raw`[\p{Default_Ignorable_Code_Point}\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640`
  + String.raw`\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0730-\u074a`
  + String.raw`\u08ca-\u08ff\u20e3]`, "gv");
const ENDINGS = ["d", "ll", "m", "re", "s", "t", "ve"], ADDRESS_WORDS = ["http", "https", "www"];
const MAX_RUN = 12, MAX_WORDS = 100, MAX_ENDING = 6, MIN_STEMMED = 4;

const normal = (text) => text.normalize("NFKC").toLowerCase().replaceAll("ß", "ss").replace(OPTIONAL_SIGNS, "")
  .normalize("NFKC").replace(/[\u2019\u02bc]/g, "'");
const foldAccents = (word) => word.normalize("NFKD").replace(/[\u0300-\u036f]+/g, "").normalize("NFKC");
const pairs = (units) => units.slice(1).map((unit, index) => units[index] + unit);

// A word, its parts and, in scripts without spaces, their characters and pairs of characters.
function* splitWord(word) {
  const parts = [...word.matchAll(PART)];
  if (parts.every((part) => !part.groups.unspaced || [...part[0]].length <= MAX_RUN)) yield word;
  for (const part of parts) {
    const run = part[0];
    if (part.groups.unspaced) {
      const units = run.match(UNIT);
      if (run !== word || units.length > 1) yield* [...units, ...pairs(units)];
      continue;
    }
    const isWhole = run === word || (run.length === 1 && /[+#]$/.test(word));
    if (!isWhole && !(/['\u2019]/.test(word[part.index - 1]) && ENDINGS.includes(run))) yield run;
    if (part.groups.hangul && run.length > 2) yield* pairs([...run]);
  }
}

function splitQuery(text) {
  return text.normalize("NFKC").match(WORD)?.flatMap((word) => [...splitWord(word)]
    .filter((piece, index) => index === 0 || piece.length > 1 || !SPACED.test(piece))).filter(normal) ?? [];
}

// BERT's tokenizer, for its uncased vocabularies.
const CJK = /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

function tokenize(text, vocabulary) {
  const plain = text.replace(/[\0\ufffd]|(?![\t\n\r])\p{C}/gu, "").replace(CJK, " $& ").normalize("NFD")
    .replace(/\p{Mn}/gu, "").toLowerCase();
  const tokens = [];
  for (const word of plain.match(/[\p{P}!-\/:-@\[-`{-~]|[^\s\p{P}!-\/:-@\[-`{-~]+/gu) ?? []) {
    const pieces = [];
    for (let start = 0, end; start < word.length; start = end) {
      const prefix = start ? "##" : "";
      for (end = word.length; end > start && !vocabulary.has(prefix + word.slice(start, end));) end--;
      if (end === start || word.length > 100) {
        pieces.splice(0, pieces.length, "[UNK]");
        break;
      }
      pieces.push(prefix + word.slice(start, end));
    }
    tokens.push(...pieces);
  }
  return tokens;
}

// Passages, as in search/passages.py.
const PASSAGE = 400, LEAD = 80;
const SENTENCE_START = /(?:[.!?]\s|[。！？]|\n(?:[ \t]*\n|[=~_*-]{3,}[ \t]*\n|(?=[ \t]*(?:[-*+#>|]|\d+[.)]))))\s*/g;

function cropPassage(text, start) {
  const part = text.slice(start, start + PASSAGE + 1);
  if (part.length <= PASSAGE) return part.trim();
  const ends = [...part.matchAll(SENTENCE_START)].map((match) => match.index).filter((index) => index >= PASSAGE / 2);
  return part.slice(0, ends.length ? ends.at(-1) + 1 : Math.max(part.lastIndexOf(" "), part.lastIndexOf("\n"), PASSAGE / 2)).trim();
}

// Scores, as in search/hits.py.
const DEPTH = 100;

function standardise(values, sample) {
  const mean = sample.reduce((sum, value) => sum + value, 0) / sample.length;
  const deviation = Math.sqrt(sample.reduce((sum, value) => sum + (value - mean) ** 2, 0) / sample.length);
  return values.map((value) => (value - mean) / (deviation > 1e-6 ? deviation : 1));
}

function makeSearch(corpus) {
  const { stops } = corpus.words, size = corpus.ids.length, words = new Map(), lengths = new Array(size).fill(0);
  const changeEnds = (word, changes) => changes.split(" ").map((change) => {
    const [removed, added] = change.split(/:(.*)/);
    return word.slice(0, word.length - removed).join("") + added;
  });
  const allChanges = corpus.words.changes.split("\n");
  let characters = [];
  corpus.words.words.split("\n").filter(Boolean).forEach((line, index) => {
    const [shared, rest] = line.split(" ");
    characters = [...characters.slice(0, shared), ...rest];
    words.set(characters.join(""), changeEnds(characters, allChanges[index]));
  });
  const terms = [...new Set([...words.values()].flat())], texts = corpus.words.postings.split("\n");
  const postings = new Map(terms.map((term, index) => [term, texts[index]]).filter(([, text]) => text));
  const stopSets = Object.values(stops).map((list) => new Set(list));

  // The rows and counts of a term.
  function readPostings(term) {
    const entries = [];
    for (const number of postings.get(term).split(" ").map(Number)) {
      if (number < 0) entries.at(-1)[1] = -number;
      else entries.push([(entries.at(-1)?.[0] ?? 0) + number, 1]);
    }
    return entries;
  }
  for (const term of postings.keys()) for (const [row, count] of readPostings(term)) lengths[row] += count;
  const meanLength = lengths.reduce((sum, length) => sum + length, 0) / size;

  function rareness(term) {
    const count = Math.max(1, postings.get(term)?.match(/(^| )\d/g).length ?? 0);
    return Math.log1p((size - count + 0.5) / (count + 0.5));
  }

  // Stem a word that is not in the corpus like those words of the corpus that end like it. Among 3,299 such words of
  // news articles whose stem is in the corpus, this finds 82%.
  let changesByEnding = null;
  function learnChanges() {
    changesByEnding = new Map();
    for (const [index, word] of [...words.keys()].entries()) {
      if (!PLAIN.test(word)) continue;
      const changes = allChanges[index];
      for (let length = 1; length <= Math.min(MAX_ENDING, word.length - 1); length++) {
        const ending = word.slice(-length), counts = changesByEnding.get(ending) ?? new Map();
        changesByEnding.set(ending, counts.set(changes, (counts.get(changes) ?? 0) + 1));
      }
    }
  }

  function guessTerms(word) {
    if (!PLAIN.test(word)) return [word.replace(/'s$/, "")];
    if (word.length < MIN_STEMMED) return [word];
    if (!changesByEnding) learnChanges();
    for (let length = Math.min(MAX_ENDING, word.length - 1); length > 0; length--) {
      const counts = [...changesByEnding.get(word.slice(-length)) ?? []];
      if (!counts.length) continue;
      const [changes] = counts.reduce((best, other) => (other[1] > best[1] ? other : best));
      return changeEnds([...word], changes);
    }
    return [word];
  }

  function findTerms(piece) {
    const word = normal(piece), plain = foldAccents(word);
    return (words.get(word) ?? words.get(plain) ?? guessTerms(plain)).filter((term) => postings.has(term));
  }

  // The words of a query by their terms, with the words that no document contains. As in search/words.py, alternative
  // terms of a word count as being as rare as the most frequent one.
  function analyseQuery(text) {
    const pieces = splitQuery(text), isShouted = text === text.toUpperCase();
    const shares = stopSets.map((stopSet) => pieces.filter((piece) => stopSet.has(normal(piece))).length);
    const likely = stopSets.filter((_, index) => shares[index] === Math.max(...shares));
    const isStop = (piece) => ADDRESS_WORDS.includes(normal(piece)) || likely.some((stopSet) => stopSet.has(normal(piece)));
    const isAcronym = (piece) => !isShouted && piece.length > 1 && piece === piece.toUpperCase() && piece !== piece.toLowerCase();
    const content = pieces.filter((piece) => isAcronym(piece) || !isStop(piece));
    const found = new Map();
    for (const piece of content.length ? content : pieces) {
      const word = piece.toLowerCase();
      if (found.has(word)) found.get(word).count++;
      else found.set(word, { word, terms: findTerms(piece), count: 1 });
    }
    for (const entry of found.values()) entry.rareness = Math.min(...entry.terms.map(rareness));
    const weight = (entry) => (1 + Math.log(entry.count)) * entry.rareness;
    const usable = [...found.values()].filter((entry) => entry.terms.length), isLong = usable.length > MAX_WORDS;
    usable.sort((a, b) => (isLong && PLAIN.test(b.word) - PLAIN.test(a.word)) || weight(b) - weight(a));
    const weights = new Map();
    for (const entry of usable.slice(0, MAX_WORDS)) {
      for (const term of entry.terms) {
        weights.set(term, 2 ** Math.round(Math.log2(entry.rareness / rareness(term))));
      }
    }
    return { weights, unknown: [...found.values()].filter((entry) => !entry.terms.length).map((entry) => entry.word) };
  }

  function bm25Scores(weights) {
    const scores = new Map();
    for (const [term, weight] of weights) {
      const idf = rareness(term) * weight;
      for (const [row, count] of readPostings(term)) {
        const saturated = (2.2 * count) / (count + 1.2 * (0.25 + (0.75 * lengths[row]) / meanLength));
        scores.set(row, (scores.get(row) ?? 0) + idf * saturated);
      }
    }
    return scores;
  }

  // Vectors: the scales of tokens and of documents, then their integers.
  let findCosines = () => null;
  if (corpus.model) {
    const { vectors } = corpus, { tokens, projections, rows, prompt } = corpus.model;
    const seen = tokens.length - projections.length, count = seen + rows.length;
    const scales = new Float32Array(vectors, 0, count), integers = new Int8Array(vectors, 4 * count);
    const dimension = integers.length / count, vocabulary = new Map(tokens.map((token, index) => [token, index]));
    findCosines = (text) => {
      const query = new Float64Array(dimension), cosines = new Array(size).fill(-1);
      for (const token of tokenize(prompt + text, vocabulary)) {
        const number = vocabulary.get(token);
        if (number === undefined) continue;
        const [index, factor] = number < seen ? [number, 1] : projections[number - seen];
        for (let d = 0; d < dimension; d++) query[d] += factor * scales[index] * integers[index * dimension + d];
      }
      const norm = Math.hypot(...query);
      if (norm) rows.forEach((row, index) => { // a document is as near as its nearest passage
        const offset = (seen + index) * dimension;
        let product = 0;
        for (let d = 0; d < dimension; d++) product += query[d] * integers[offset + d];
        cosines[row] = Math.max(cosines[row], (product * scales[seen + index]) / norm);
      });
      return norm ? cosines : null;
    };
  }

  // Return the hits among the rows that match a filter, best first, and the unknown words of the query.
  function rank(text, isCandidate) {
    const query = analyseQuery(text), cosines = findCosines(text);
    const byScore = (scoreOf) => (a, b) => scoreOf(b) - scoreOf(a) || (corpus.ids[a] < corpus.ids[b] ? -1 : 1);
    const scores = bm25Scores(query.weights), bm25Of = (row) => scores.get(row) ?? 0;
    const byWords = [...scores.keys()].filter(isCandidate).sort(byScore(bm25Of)).slice(0, cosines ? DEPTH : size);
    if (!cosines) return { ...query, hits: byWords.map((row) => ({ row, bm25: bm25Of(row) })) };
    const nearest = corpus.ids.map((_, row) => row).filter(isCandidate).sort(byScore((row) => cosines[row])).slice(0, DEPTH);
    const rows = [...new Set([...nearest, ...byWords])], withWords = new Set(byWords);
    const bm25 = rows.map((row) => (withWords.has(row) ? bm25Of(row) : 0)), cosine = rows.map((row) => cosines[row]);
    const byBm25 = standardise(bm25, [...bm25].sort((a, b) => b - a).slice(0, DEPTH)), byCosine = standardise(cosine, cosine);
    const fused = new Map(rows.map((row, index) => [row, byBm25[index] + corpus.model.weight * byCosine[index]]));
    const hits = rows.map((row) => ({ row, cosine: cosines[row], bm25: withWords.has(row) ? bm25Of(row) : null }));
    return { ...query, hits: hits.sort((a, b) => byScore((row) => fused.get(row))(a.row, b.row)) };
  }

  // The places of a query's words in a text, with the words' terms.
  function findWords(text, query) {
    const places = [];
    const findTerm = (piece) => {
      return words.get(normal(piece))?.find((term) => query.weights.has(term));
    };
    const units = (part) => [...part[0].matchAll(UNIT)].map((unit) => ({ 0: unit[0], index: part.index + unit.index }));
    for (const match of text.matchAll(WORD)) {
      const isWhole = findTerm(match[0]), parts = isWhole ? [{ 0: match[0], index: 0 }] : [...match[0].matchAll(PART)];
      for (const part of parts.flatMap((part) => (part.groups?.unspaced ? units(part) : [part]))) {
        const term = findTerm(part[0]);
        if (term) places.push({ start: match.index + part.index, length: part[0].length, term });
      }
    }
    return places;
  }

  // The part of a text with most words of the query; its beginning if it has none of them.
  function findPassage(text, query) {
    const places = findWords(text, query);
    if (text.length <= PASSAGE || !places.length) return cropPassage(text, 0);
    const starts = [0, ...[...text.matchAll(SENTENCE_START)].map((match) => match.index + match[0].length)];
    const parts = new Map();
    for (const { start, term } of places) parts.set(term, (parts.get(term) ?? new Set()).add(Math.floor(start / PASSAGE)));
    let sentence = 0, previous = -1, best = 0, bestScore = 0;
    places.forEach((place, number) => {
      while (starts[sentence + 1] <= place.start) sentence++;
      let start = starts[sentence];
      if (place.start - start > PASSAGE - LEAD) {
        start = Math.max(text.lastIndexOf(" ", place.start - LEAD) + 1, place.start - 2 * LEAD);
      }
      if (start === previous) return;
      previous = start;
      const counts = new Map();
      for (let other = number; other < places.length && places[other].start < start + PASSAGE; other++) {
        counts.set(places[other].term, (counts.get(places[other].term) ?? 0) + 1);
      }
      let score = 0;
      for (const [term, count] of counts) score += Math.log1p(text.length / PASSAGE / parts.get(term).size) * (2 - 1 / count);
      if (score > bestScore) [best, bestScore] = [start, score];
    });
    return cropPassage(text, best);
  }

  return { analyseQuery, rank, findWords, findPassage };
}
