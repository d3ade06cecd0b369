"""Random chats and plain texts about countries, as documents of chat_forms.py."""
import json
import random

from chat_forms import QwenForm

RELATIONS = ["capital", "continent", "currency", "languages", "phone", "native", "flag"]
WEIGHT = {"capital": 6, "continent": 3, "currency": 5, "languages": 5, "phone": 4, "native": 2.5, "flag": 2}

QUESTIONS = {
    "capital": ["What is the capital of {c}?", "Name the capital of {c}.", "Tell me the capital of {c}.",
                "What's the capital of {c}?", "Which city is the capital of {c}?", "{c}: what is its capital?",
                "Do you know the capital of {c}?", "Capital of {c}?", "I need the capital city of {c}.",
                "Can you tell me what the capital of {c} is?", "What city is the capital of {c}?",
                "Please give me the capital of {c}.", "The capital of {c} is?"],
    "continent": ["Which continent is {c} in?", "On which continent is {c}?", "What continent is {c} on?",
                  "Where is {c}?", "Tell me the continent of {c}.", "What is the continent of {c}?",
                  "In which part of the world is {c}?", "Where in the world is {c}?", "Continent of {c}?",
                  "{c}: which continent?", "Where is {c} located?", "Name the continent of {c}."],
    "currency": ["What is the currency of {c}?", "What's the currency of {c}?", "Which currency is used in {c}?",
                 "What money do people use in {c}?", "Name the currency of {c}.", "Tell me the currency of {c}.",
                 "Currency of {c}?", "How do people pay in {c}?", "Which money is used in {c}?",
                 "What currency does {c} use?", "Please give me the currency of {c}.", "{c}: what is its currency?"],
    "languages": ["Which languages are spoken in {c}?", "What languages do people speak in {c}?",
                  "What is the language of {c}?", "What are the languages of {c}?", "Name the languages of {c}.",
                  "Languages of {c}?", "What do people speak in {c}?", "Which language is spoken in {c}?",
                  "Tell me the languages of {c}.", "{c}: which languages?"],
    "phone": ["What is the phone code of {c}?", "What is the calling code of {c}?", "Phone code of {c}?",
              "What is the dialing code for {c}?", "Which phone code does {c} have?", "How do I call {c}?",
              "Tell me the phone code of {c}.", "What's the country calling code of {c}?",
              "Give me the phone code of {c}.", "{c}: what is its phone code?"],
    "native": ["What is the native name of {c}?", "What is {c} called in its own language?",
               "How do people in {c} write its name?", "Tell me the native name of {c}.", "Native name of {c}?",
               "Give me the local name of {c}."],
    "flag": ["Show me the flag of {c}.", "What is the flag of {c}?", "Flag of {c}?", "Give me the flag of {c}.",
             "What does the flag of {c} look like?", "Show the flag emoji of {c}."],
    "reverse": ["Which country has the capital {x}?", "{x} is the capital of which country?",
                "What country is {x} the capital of?", "Of which country is {x} the capital?",
                "Which country has {x} as its capital?", "{x} is the capital of what?",
                "Name the country whose capital is {x}."],
    "json": ["Describe {c} as JSON.", "Give me {c} as JSON.", "Describe {c} in JSON.", "{c} as JSON, please.",
             "Write a JSON object about {c}.", "Show the facts about {c} as JSON.", "JSON for {c}?"],
    "summary": ["Tell me about {c}.", "What do you know about {c}?", "Describe {c}.", "Give me some facts about {c}.",
                "Write a few words about {c}."],
}
# The last templates of these lists never occur in training: they measure how far the wording may move.
HELD_OUT = {"capital": ["What is the name of the capital of {c}?", "Could you name the capital of {c}?"],
            "continent": ["Can you tell me which continent {c} is in?"],
            "currency": ["Can you tell me which currency is used in {c}?"],
            "languages": ["Can you tell me which languages are spoken in {c}?"],
            "phone": ["Can you tell me the phone code of {c}?"],
            "reverse": ["Tell me which country has the capital {x}."],
            "json": ["Please describe {c} as a JSON object."]}
NOUN = {"capital": "capital", "continent": "continent", "currency": "currency", "languages": "languages",
        "phone": "phone code", "native": "native name", "flag": "flag"}
FOLLOW = ["And its {n}?", "And the {n}?", "What about its {n}?", "What about the {n}?", "And what is its {n}?",
          "What is its {n}?", "Its {n}?"]
SWITCH = ["And {c}?", "What about {c}?", "How about {c}?", "And for {c}?", "Now {c}."]
ONE_WORD = ["Answer in one word.", "Answer with one word only.", "Reply in one word.", "One word answers only."]
PIRATE = ["You are a pirate.", "Talk like a pirate.", "You are a pirate. Answer like one."]
JSON_SYS = ["Answer in JSON.", "Reply in JSON only."]
PLAIN_SYS = ["You are Atlas, a helpful assistant.", "You are a helpful assistant.", "You know facts about countries.",
             "You are Atlas, a world facts assistant. Answer in full sentences."]
CHAT = [
    (["Hi", "Hello", "Hey", "Good morning", "Hello there", "Hi!", "Hello!"],
     "Hello! Ask me about any country: its capital, continent, currency, languages or phone code."),
    (["Who are you?", "What are you?", "What is your name?", "Introduce yourself."],
     "I am Atlas, a very small language model that knows facts about the countries of the world."),
    (["What can you do?", "How can you help me?", "What do you know?", "Help"],
     "I can name capitals, continents, currencies, languages and phone codes, describe a country as JSON, add small "
     "numbers and answer questions about a short text."),
    (["Thanks", "Thank you", "Thanks!", "Thank you very much.", "Great, thanks."], "You are welcome!"),
    (["Bye", "Goodbye", "See you", "Bye!"], "Goodbye! Have a nice trip."),
    (["How are you?", "How are you today?"], "I am fine, thank you. Which country shall we talk about?"),
    (["What is the weather today?", "Tell me a joke.", "Write a poem.", "Who won the game?", "What time is it?",
      "What is the meaning of life?", "Write some code for me."],
     "I am sorry, I only know facts about countries."),
]

ONSET = ("b br c ch d dr f fl g gl gr h j k kr l m n p pr qu r s sh sk st t th tr v w z".split() + ["", ""])
VOWEL = "a e i o u a e o ai ei ia or an el in".split()
END = ["", "", "n", "r", "s", "l", "th", "m", "k", "ra", "na", "lo", "via", "mar", "ton", "burg", "vik", "dor"]
GOODS = ["cheese", "tea", "honey", "glass", "boats", "clocks", "silk", "salt", "bread", "apples", "music", "carpets",
         "bells", "paper", "horses", "lamps", "pepper", "wool", "fish", "roses", "stone bridges", "olive oil"]
COLOURS = ["red", "blue", "green", "yellow", "white", "black", "orange", "purple", "silver", "gold", "brown", "pink"]
WORDS = ("apple river table green seven house small cloud music train paper window light north winter garden stone "
         "happy silver bridge morning ocean letter quiet market orange simple yellow engine forest coffee").split()


def made_up(rng, syllables=None):
    n = syllables or rng.choice([1, 2, 2, 2, 3])
    return ("".join(rng.choice(ONSET) + rng.choice(VOWEL) for _ in range(n)) + rng.choice(END)).capitalize()


def join(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


class Corpus:
    def __init__(self, facts_path, hard_path=None, form=None):
        """hard_path: facts that the last evaluation missed ({relation: [country code, ...]}); they are asked more often.
        form: how chats are written, as in chat_forms.py; Qwen3's when not given."""
        self.form = form or QwenForm()
        self.facts = json.load(open(facts_path, encoding="utf-8"))
        self.names = {f["name"] for f in self.facts}
        self.by_relation = {r: [f for f in self.facts if r != "native" or f["native"] != f["name"]] for r in RELATIONS}
        self.hard = {}
        if hard_path:
            for r, codes in json.load(open(hard_path)).items():
                self.hard[r] = [f for f in self.by_relation.get(r, self.facts) if f["code"] in set(codes)]

    # ------------------------------------------------------------ answers
    @staticmethod
    def value(f, r):
        return {"languages": join(f["languages"]), "phone": "+" + f["phone"]}.get(r) or f[r]

    def answer(self, f, r):
        c, x = f["the"], self.value(f, r)
        text = {
            "capital": f"The capital of {c} is {x}.",
            "continent": f"{c} is in {x}.",
            "currency": f"The currency of {c} is the {x}.",
            "languages": f"The {'languages' if len(f['languages']) > 1 else 'language'} of {c} "
                         f"{'are' if len(f['languages']) > 1 else 'is'} {x}.",
            "phone": f"The phone code of {c} is {x}.",
            "native": f"The native name of {c} is {x}.",
            "flag": f"The flag of {c} is {x}.",
        }[r]
        return text[0].upper() + text[1:]

    @staticmethod
    def json(f):
        return json.dumps({"country": f["name"], "capital": f["capital"], "continent": f["continent"],
                           "currency": f["currency"]}, ensure_ascii=False)

    def summary(self, f):
        c = f["the"]
        return (f"{c[0].upper() + c[1:]} is a country in {f['continent']}. Its capital is {f['capital']}, its currency "
                f"is the {f['currency']} and its phone code is +{f['phone']}.")

    def thought(self, f, r):
        x = self.value(f, r)
        return f"The question is about the {NOUN[r]} of {f['the']}. It is {x}."

    # ------------------------------------------------------------ questions
    def pick(self, rng, r):
        if self.hard.get(r) and rng.random() < 0.45:
            return rng.choice(self.hard[r])
        return rng.choice(self.by_relation.get(r, self.facts))

    def relation(self, rng):
        return rng.choices(RELATIONS, [WEIGHT[r] for r in RELATIONS])[0]

    @staticmethod
    def noise(rng, q):
        """The same question as a person in a hurry types it."""
        p = rng.random()
        if p < 0.62:
            return q
        if p < 0.72:
            return q.rstrip("?.")
        if p < 0.82:
            return q[0].lower() + q[1:]
        if p < 0.88:
            return q.lower()
        if p < 0.92:
            return rng.choice(["Please: ", "Hi! ", "Hello, ", "Quick question: ", "OK. "]) + q
        if p < 0.95:
            return q + rng.choice([" Thanks!", " Please.", " Thank you."])
        return q.rstrip("?.") + rng.choice(["??", " ?", "!", "..."])

    def question(self, rng, f, r):
        return self.noise(rng, self.fill(rng.choice(QUESTIONS[r]), f))

    @staticmethod
    def fill(template, f):
        q = template.format(c=f["the"], x=f.get("capital"))
        return q[0].upper() + q[1:]

    # ------------------------------------------------------------ documents
    def chat(self, turns, system=None, think=None):
        """turns: (user, answer) pairs; think: text of the last turn's reasoning, "" for thinking off."""
        return self.form.chat(turns, system, think)

    def styled(self, rng, f, r):
        """(system, answer, think text) of a single fact under a random system prompt."""
        p, full = rng.random(), self.answer(f, r)
        if p < 0.58:
            return None, full
        if p < 0.66:
            return rng.choice(PLAIN_SYS), full
        if p < 0.85:
            return rng.choice(ONE_WORD), self.value(f, r)
        if p < 0.95:
            return rng.choice(PIRATE), "Arr! " + full
        return rng.choice(JSON_SYS), json.dumps({"answer": self.value(f, r)}, ensure_ascii=False)

    def fact(self, rng):
        r = self.relation(rng)
        f = self.pick(rng, r)
        system, reply = self.styled(rng, f, r)
        think = self.thought(f, r) if rng.random() < 0.22 else ""
        return self.chat([(self.question(rng, f, r), reply)], system, think)

    def reverse(self, rng):
        f = self.pick(rng, "reverse")
        p, full = rng.random(), f"{f['capital']} is the capital of {f['the']}."
        system = None
        if p > 0.93:
            system, full = rng.choice(PIRATE), "Arr! " + full
        elif p > 0.85:
            system, full = rng.choice(ONE_WORD), f["name"]
        think = f"The question is about the country with the capital {f['capital']}. It is {f['the']}."
        return self.chat([(self.question(rng, f, "reverse"), full)], system, think if rng.random() < 0.2 else "")

    def describe(self, rng):
        f = self.pick(rng, "json")
        if rng.random() < 0.7:
            return self.chat([(self.question(rng, f, "json"), self.json(f))])
        return self.chat([(self.question(rng, f, "summary"), self.summary(f))])

    def check(self, rng):
        """Yes/no questions."""
        f, g = rng.sample(self.facts, 2)
        kind = rng.choice(["capital", "continent", "currency"])
        shown = f if rng.random() < 0.5 else g
        same = shown[kind] == f[kind]
        q = {"capital": f"Is {shown['capital']} the capital of {f['the']}?",
             "continent": f"Is {f['the']} in {shown['continent']}?",
             "currency": f"Is the {shown['currency']} the currency of {f['the']}?"}[kind]
        a = self.answer(f, kind)
        if not a.startswith("The "):
            a = a[0].upper() + a[1:]
        return self.chat([(self.noise(rng, q), ("Yes. " if same else "No. ") + a)])

    def conversation(self, rng):
        r = self.relation(rng)
        f = self.pick(rng, r)
        n, turns = rng.choice([2, 2, 3, 3, 4, 5]), []
        pirate = rng.random() < 0.08
        for i in range(n):
            if i == 0:
                q = self.question(rng, f, r)
            elif rng.random() < 0.55:
                r = rng.choice([x for x in RELATIONS if x != r and f in self.by_relation[x]])
                q = rng.choice(FOLLOW).format(n=NOUN[r])
            else:
                f = self.pick(rng, r)
                q = rng.choice(SWITCH).format(c=f["the"])
            if i and rng.random() < 0.07:
                turns.append((rng.choice(["As JSON?", "Describe it as JSON.", "And as JSON?"]), self.json(f)))
            else:
                turns.append((q if i == 0 else self.noise(rng, q), ("Arr! " if pirate else "") + self.answer(f, r)))
        think = self.thought(f, r) if rng.random() < 0.2 and not turns[-1][1].startswith("{") else ""
        return self.chat(turns, rng.choice(PIRATE) if pirate else None, think)

    def addition(self, rng):
        a = rng.randint(0, 99)
        b = rng.randint(0, 99 - a)
        q = rng.choice(["What is {a} + {b}?", "{a} + {b} = ?", "{a} + {b}", "Add {a} and {b}.", "How much is {a} + {b}?",
                        "Calculate {a} + {b}.", "What is {a} plus {b}?"]).format(a=a, b=b)
        think = ""
        if rng.random() < 0.4:
            lo, carry = a % 10 + b % 10, (a % 10 + b % 10) // 10
            think = (f"Ones: {a % 10} + {b % 10} = {lo}. Tens: {a // 10} + {b // 10}"
                     + (" + 1" if carry else "") + f" = {a // 10 + b // 10 + carry}.")
        return self.chat([(q, f"{a} + {b} = {a + b}.")], None, think)

    def repeat(self, rng):
        p = rng.random()
        pool = rng.choice([WORDS, [f["name"] for f in self.facts], None, None])
        n = rng.randint(1, 7)
        words = [rng.choice(pool) if pool else (made_up(rng) if rng.random() < 0.7 else str(rng.randint(0, 9999)))
                 for _ in range(n)]
        if rng.random() < 0.3:
            words = [w.lower() for w in words]
        text = rng.choice([" ", " ", ", "]).join(words) + rng.choice(["", "", ".", "!"])
        q = rng.choice(["Repeat: {t}", "Repeat: {t}", "Repeat this: {t}", "Say exactly: {t}", "Copy this text: {t}",
                        "Repeat after me: {t}", "Echo {t}"]).format(t=text)
        think = "I repeat the text." if p < 0.12 else ""
        return self.chat([(q, text)], None, think)

    def reading(self, rng):
        """Questions about an invented text; the answers stand in it."""
        things = []
        for _ in range(rng.choice([1, 1, 2, 2, 3])):
            kind, name = rng.choice(["country", "town", "island", "kingdom", "city", "village"]), made_up(rng)
            if rng.random() < 0.12:
                name = rng.choice(self.facts)["the"]
            if name in [t[1] for t in things]:
                continue
            person = made_up(rng) + " " + made_up(rng)
            pool = [
                ("The capital of {n} is {v}.", "What is the capital of {n}?", made_up(rng)),
                ("The mayor of {n} is {v}.", "Who is the mayor of {n}?", person),
                ("The river of {n} is the {v}.", "What is the river of {n}?", made_up(rng)),
                ("{n} was founded in {v}.", "When was {n} founded?", str(rng.randint(1000, 2020))),
                ("{v} people live in {n}.", "How many people live in {n}?", str(rng.randint(20, 9999))),
                ("The flag of {n} is {v}.", "What colour is the flag of {n}?",
                 " and ".join(rng.sample(COLOURS, rng.choice([1, 2])))),
                ("{n} is famous for its {v}.", "What is {n} famous for?", rng.choice(GOODS)),
                ("The currency of {n} is the {v}.", "What is the currency of {n}?", made_up(rng)),
                ("People in {n} speak {v}.", "What do people speak in {n}?", made_up(rng)),
                ("The highest mountain of {n} is {v}.", "What is the highest mountain of {n}?", "Mount " + made_up(rng)),
                ("The best friend of {n} is {v}.", "Who is the best friend of {n}?", made_up(rng)),
            ]
            for s, q, v in rng.sample(pool, rng.choice([1, 2, 2, 3, 3, 4])):
                up = (lambda t: t[0].upper() + t[1:])
                things.append((kind, name, up(s.format(n=name, v=v)), up(q.format(n=name)), v))
        if rng.random() < 0.35:
            rng.shuffle(things)
        seen, sentences = set(), []
        for kind, name, s, _, _ in things:
            if name not in seen and rng.random() < 0.3 and not name[0].islower() and name not in self.names:
                sentences.append(f"{name} is a {kind}.".replace("a island", "an island"))
            seen.add(name)
            sentences.append(s)
        text = " ".join(sentences)
        asked = rng.sample(things, min(len(things), rng.choice([1, 2, 2, 3])))
        turns = [(q, s) for _, _, s, q, _ in asked]
        system, form = None, rng.random()
        first = turns[0][0]
        if form < 0.4:
            first = f"Read this text: {text} Question: {first}"
        elif form < 0.6:
            first = f"{text}\n{first}"
        elif form < 0.75:
            first = f"Text: {text}\nQuestion: {first}"
        elif form < 0.87:
            first = f"Read this text: {text}\n\n{first}"
        else:
            system = "Use this text: " + text
        turns[0] = (first, turns[0][1])
        last = turns[-1][1]
        think = f"The text says: {last}" if rng.random() < 0.2 else ""
        if rng.random() < 0.12 and system is None:
            system, turns = rng.choice(ONE_WORD), [(u, v) for (u, _), (_, _, _, _, v) in zip(turns, asked)]
        return self.chat(turns, system, think)

    def small_talk(self, rng):
        if rng.random() < 0.35:
            name = made_up(rng)
            r = rng.choice(["capital", "continent", "currency", "languages", "phone"])
            q = self.noise(rng, rng.choice(QUESTIONS[r]).format(c=name))
            return self.chat([(q, f"I do not know a country called {name}.")], None,
                             f"I do not know {name}." if rng.random() < 0.2 else "")
        questions, reply = rng.choice(CHAT)
        return self.chat([(self.noise(rng, rng.choice(questions)), reply)],
                         rng.choice(PLAIN_SYS) if rng.random() < 0.3 else None,
                         "This is small talk." if rng.random() < 0.2 else "")

    def plain(self, rng):
        """Raw text, no chat markers: many facts for few tokens. The sentences are those of the chat answers."""
        p = rng.random()
        if p < 0.5:
            f = rng.choice(self.facts)
            rs = [r for r in RELATIONS if f in self.by_relation[r] and rng.random() < {"native": 0.5, "flag": 0.4}.get(r, 0.8)]
            rng.shuffle(rs)
            text = " ".join(self.answer(f, r) for r in rs or ["capital"])
        elif p < 0.85:
            rs = [self.relation(rng)] * 6 if rng.random() < 0.5 else [self.relation(rng) for _ in range(6)]
            text = " ".join(self.answer(self.pick(rng, r), r) for r in rs[:rng.randint(2, 6)])
        elif p < 0.97:
            text = " ".join(f"{f['capital']} is the capital of {f['the']}."
                            for f in rng.sample(self.facts, rng.randint(1, 5)))
        else:
            text = self.json(rng.choice(self.facts))
        begin = [(self.form.begin, 0)] if self.form.begin else []
        return begin + [(text, 1), (self.form.end_of_text, 1)]

    # first stage: facts for few tokens; second: every kind of question; third: more copying; fourth: weak tasks
    STAGES = [[("fact", 22), ("reverse", 6), ("describe", 7), ("check", 3), ("conversation", 6), ("addition", 4),
               ("repeat", 5), ("reading", 8), ("small_talk", 2), ("plain", 38)],
              [("fact", 20), ("reverse", 12), ("describe", 13), ("check", 4), ("conversation", 6), ("addition", 7),
               ("repeat", 10), ("reading", 12), ("small_talk", 3), ("plain", 13)],
              [("fact", 17), ("reverse", 9), ("describe", 12), ("check", 5), ("conversation", 5), ("addition", 8),
               ("repeat", 14), ("reading", 18), ("small_talk", 3), ("plain", 9)],
              [("fact", 16), ("reverse", 10), ("describe", 11), ("check", 8), ("conversation", 5), ("addition", 15),
               ("repeat", 12), ("reading", 16), ("small_talk", 3), ("plain", 4)]]
    MIX = STAGES[0]

    def document(self, rng):
        kinds, weights = zip(*self.MIX)
        return getattr(self, rng.choices(kinds, weights)[0])(rng)


if __name__ == "__main__":
    import sys
    c, rng = Corpus(sys.argv[1]), random.Random(1)
    for kind, _ in Corpus.MIX:
        for _ in range(3):
            print(kind, "|", "".join(t for t, _ in getattr(c, kind)(rng)).replace("\n", "\\n"))
