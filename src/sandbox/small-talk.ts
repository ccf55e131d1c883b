import type { SandboxMessage } from "./chat-request.ts";
import { isJapanese, nameOfSpeaker } from "./memory.ts";
import { writeProse } from "./prose.ts";

const describe = (
  model: string,
) => `I am **${model}**, a small deterministic model that runs inside this program. No account, no key, nothing leaves this machine. I do not know much, but I can show what the bot can do:

- \`write 300 words with code, a table and Japanese\` (add \`slowly\`, or \`at 20 words per second\`)
- \`code in python\`, \`a table\`, \`count to 50\`
- \`repeat after me: …\`, exactly as you wrote it
- \`my name is Ada\`, and later \`what is my name?\` or \`what did I say before?\`
- attach a picture, and I say how large it is and which colours it has
- name one of my tools, and I use it: \`use current_time\`
- \`draw a red boat\`, and then \`now at night\`
- \`sandbox thinking\` lists the ways in which I can think before I answer
- \`sandbox faults\` lists what I can break on purpose

To talk to a real model, set \`GATEWAY_BASE_URL\` and \`GATEWAY_API_KEY\`.`;

const describeJa = (
  model: string,
) => `私は **${model}** です。このプログラムの中で動く、小さな練習用のモデルです。次のように話しかけてみてください。

- 「300字書いて」「表を見せて」「Pythonのコード」
- \`repeat after me: …\` と書くと、そのまま繰り返します
- 「私の名前はアダです」のあとで「私の名前は何ですか」
- 画像を添付すると、大きさと色を答えます`;

interface Phrase {
  words: RegExp;
  answer(name: string | undefined, model: string): string;
}

const ENGLISH: readonly Phrase[] = [
  { words: /\bwhat can you do\b|\bhelp\b|\bhow do(?:es)? (?:i|this|it)\b/i, answer: (_, model) => describe(model) },
  {
    words: /\bwho are you\b|\bwhat are you\b|\byour name\b|\bwhich model\b|\bintroduce yourself\b/i,
    answer: (_, model) =>
      `I am **${model}**, the practice model inside this program. Ask me \`what can you do?\` to see what to try.`,
  },
  { words: /^\W*(?:go on|carry on|keep going|continue)\b/i, answer: goOn },
  { words: /\bhow are you\b/i, answer: () => "Steady as ever: I am deterministic. And you?" },
  { words: /\bthank(?:s| you)\b/i, answer: (name) => `You are welcome${address(name)}!` },
  { words: /\b(?:good ?bye|bye|see you|good night)\b/i, answer: (name) => `Goodbye${address(name)}!` },
  {
    words: /^\W*(?:hello|hi|hey|good (?:morning|afternoon|evening)|greetings)\b/i,
    answer: (name, model) =>
      `Hello${address(name)}! I am **${model}**, the practice model inside this program. What would you like to try?`,
  },
];

const JAPANESE: readonly Phrase[] = [
  { words: /何ができ|なにができ|使い方|ヘルプ/, answer: (_, model) => describeJa(model) },
  {
    words: /誰ですか|だれですか|あなたの名前|自己紹介/,
    answer: (_, model) => `私は **${model}** です。このプログラムの中で動く練習用のモデルです。`,
  },
  { words: /元気/, answer: () => "はい、元気です。あなたはいかがですか。" },
  { words: /ありがと/, answer: (name) => `どういたしまして${addressJa(name)}。` },
  { words: /さようなら|またね|おやすみ/, answer: (name) => `またお話ししましょう${addressJa(name)}。` },
  { words: /おはよう/, answer: (name) => `おはようございます${addressJa(name)}。今日は何をしましょうか。` },
  { words: /こんばんは/, answer: (name) => `こんばんは${addressJa(name)}。` },
  {
    words: /こんにちは|はじめまして|もしもし/,
    answer: (name, model) => `こんにちは${addressJa(name)}。私は **${model}** です。`,
  },
];

/** Longest part of a message that the last resort repeats. */
const MAX_REPEATED_CHARS = 200;

/** Always has an answer, in the language of the words. `model` is what it calls itself. */
export function answerSmallTalk(messages: readonly SandboxMessage[], text: string, model: string): string {
  const name = nameOfSpeaker(messages);
  const phrases = isJapanese(text) ? JAPANESE : ENGLISH;
  const phrase = phrases.find(({ words }) => words.test(text));
  if (phrase !== undefined) return phrase.answer(name, model);
  return isJapanese(text) ? answerUnknownJa(text) : answerUnknown(text, name);
}

/** More of the same, without the heading that prose begins with. */
function goOn(): string {
  return (writeProse("write 60 words") ?? "").replace(/^#.*\n+/, "");
}

function answerUnknown(text: string, name: string | undefined): string {
  if (text.trim() === "") return "There were no words in your message. Ask me `what can you do?` to see what to try.";
  return `You wrote${address(name)}:\n\n${quote(text)}\n\nI am only the sandbox's practice model and have no better answer. Ask me \`what can you do?\` to see what to try.`;
}

function answerUnknownJa(text: string): string {
  return `次のように書かれました。\n\n${quote(text)}\n\n私は練習用のモデルなので、うまく答えられません。「何ができますか」と聞いてみてください。`;
}

function quote(text: string): string {
  const points = Array.from(text.trim());
  const shown =
    points.length > MAX_REPEATED_CHARS ? `${points.slice(0, MAX_REPEATED_CHARS).join("")}…` : points.join("");
  return shown.replace(/^/gm, "> ");
}

function address(name: string | undefined): string {
  return name === undefined ? "" : `, ${name}`;
}

function addressJa(name: string | undefined): string {
  return name === undefined ? "" : `、${name}さん`;
}
