"""What a model is made to say to rows of our own making, whatever is asked."""

# What a model says to any question: each prompt gets one of these.
ANSWERS = (
    " The answer is (B).",
    " (A)",
    "Let me think. So the answer is (C). Is it?",
    "the answer is Yes.",
    " True",
    " valid",
    " 6\n#### 6,000",
    r" We get $\boxed{4}$. Final Answer: The final answer is $4$. I hope it is correct.",
    r" \boxed{10}",
    " The river",
    "the old clock, a cat",
    "3 May 1900",
    "it is four, or 4.",
    "* one river\n* two stone words",
    '"a quoted river stone, in five words"',
    "answer is D",
    ": B",
    "No",
    "14",
    "date fig lime pear",
    "",
)
# What it says where it is asked again.
REPEATED = (
    "It is 5. The answer is 5,000.",
    "The answer is 2000.",
    "Say 2000. The answer is 2,000!",
    "No idea",
    "The answer is 5000",
    "The answer is 3000.",
    "",
)
