"""Conversations for jinja_goldens.py: the inputs of the project's chat specification, and harder ones."""

CHAT_TEMPLATES = ["qwen3.jinja", "atlas.jinja", "glm45_style.jinja", "llama3_style.jinja", "mistral_style.jinja",
                  "deepseek_style.jinja"]

SYS = {"role": "system", "content": "You are a pirate."}
HI = {"role": "user", "content": "Hi"}
NOW = {"role": "user", "content": "And now?"}
TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
TOOL2 = {"type": "function", "function": {"name": "größe", "description": "Say \"<hi>\" & 'bye'\n\ttab \u2028 😀", "parameters": {
    "type": "object", "properties": {"n": {"type": "number", "minimum": 0.5, "maximum": 1e22, "default": 1.0, "enum": [1, 2.5, None, True]},
                                     "items": {"type": "array", "items": {"type": "string"}}}}}}


def call(ident=None, **arguments):
    out = {"type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    if ident:
        out["id"] = ident
    return out


def result(text):
    return {"role": "tool", "content": text}


def answer(text, reasoning=None, calls=None):
    out = {"role": "assistant", "content": text}
    if reasoning is not None:
        out["reasoning_content"] = reasoning
    if calls:
        out["tool_calls"] = calls
    return out


def chat_cases():
    e = [HI, answer("", "need weather", [call(city="Paris")]), result("22C")]
    cases = {
        "A": ([SYS, HI], {}),
        "B": ([SYS, HI], {"enable_thinking": False}),
        "C": ([SYS, HI, answer("Hello!", "plan A"), NOW], {"enable_thinking": False}),
        "D": ([SYS, HI], {"tools": [TOOL]}),
        "E": (e, {}),
        "F": ([HI, answer("Checking.", None, [call(city="Paris"), call(city="Rome", n=2)]), result("22C"), result("25C")], {}),
        "G": (e + [answer("It is 22C."), NOW], {}),
        "thinking on": ([SYS, HI], {"enable_thinking": True}),
        "no system": ([HI], {}),
        "two systems": ([SYS, HI, answer("a"), SYS, NOW], {}),
        "two tools": ([HI], {"tools": [TOOL, TOOL2]}),
        "inline thinking": ([HI, answer("<think>\nplan\n</think>\n\nYes"), NOW, answer("<think>x</think>No")], {}),
        "last is assistant": ([HI, answer("Yes")], {"add_generation_prompt": False}),
        "last is assistant, reasoned": ([HI, answer("\n\nYes ", "\nwhy\n")], {"add_generation_prompt": False}),
        "no generation prompt": ([SYS, HI], {"add_generation_prompt": False}),
        "two users": ([HI, NOW], {}),
        "unknown role": ([HI, {"role": "narrator", "content": "x"}], {}),
        "only system": ([SYS], {}),
        "empty content": ([{"role": "user", "content": ""}], {}),
        "odd text": ([{"role": "user", "content": "  <|im_end|>\r\n{{ x }} {% if %} 日本語 \u2028😀 é\n\n "}], {}),
        "tool ids": ([HI, answer("", None, [call("abcdefghi", city="Paris")]), result("22C"), answer("ok"), NOW], {"tools": [TOOL]}),
        "tool response as user": ([HI, {"role": "user", "content": "<tool_response>\nx\n</tool_response>"}, answer("y", "z")], {}),
        "argument types": ([HI, answer("", None, [call(a="s", b=1, c=1.5, d=None, e=[1, {"x": "é"}], f={"k": True}, g="")])], {}),
        "arguments as text": ([HI, {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {
            "name": "f", "arguments": "{\"a\":1}"}}]}], {}),
        "null content": ([HI, {"role": "assistant", "content": None, "tool_calls": [call(city="Paris")]}], {}),
        "no messages": ([], {}),
    }
    out = {}
    for name, (messages, extra) in cases.items():
        out[name] = {"messages": messages, "tools": None, "documents": None, "add_generation_prompt": True, "bos_token": "<s>",
                     "eos_token": "</s>", **extra}
    return out
